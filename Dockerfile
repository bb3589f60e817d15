# One image for web, boxes, judges, provider and migrate; docker-compose.yml says what each of them runs.
FROM python:3.12-slim

ENV PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1

WORKDIR /app

# What a judge's sandbox filters system calls with; the rest of it is in the requirements and in the image already.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends libseccomp2 \
    && rm -rf /var/lib/apt/lists/*

# The locked requirements first, so that a change of code does not install them again.
COPY requirements.txt ./
RUN pip install --no-cache-dir --disable-pip-version-check --require-hashes -r requirements.txt

COPY manage.py ./
COPY marlow ./marlow
COPY shop ./shop
COPY sweeper ./sweeper
COPY exercises ./exercises
COPY grading ./grading

# Settings refuse to load without a secret key. This one lives as long as the command and signs nothing.
RUN SECRET_KEY="$(python -c 'import secrets; print(secrets.token_urlsafe(50))')" python manage.py collectstatic --noinput

# The code belongs to root and is read-only to the process; /state is all it may write.
RUN useradd --system --uid 10001 --no-create-home --shell /usr/sbin/nologin marlow \
    && install --directory --owner marlow --group marlow --mode 0700 /state
ENV MARLOW_STATE_DIR=/state
USER marlow

EXPOSE 8000
CMD ["gunicorn", "marlow.wsgi:application", "--bind", "0.0.0.0:8000", "--workers", "2", "--no-control-socket"]
