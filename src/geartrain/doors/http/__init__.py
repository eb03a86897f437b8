"""The HTTP door: the API with its OpenAPI document, event streams, metrics, health checks, and the dashboard."""
