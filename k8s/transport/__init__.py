"""The way to the API server: connections, requests, lists and watches."""
