"""Every strategy of the registry, held on real servers to what it declares. A new one comes in by itself."""
