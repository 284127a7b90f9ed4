"""The API server: requests, reflectors, writes with their retries, and the lease."""
