"""What an exercise is made of: typed answers, checks that decide them, known answers that keep those honest."""
