"""The HTTP door: the API, its description, live events, metrics, health, and the dashboard's files."""
