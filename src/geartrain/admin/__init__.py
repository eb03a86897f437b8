"""What operators see and do: views of the server, and the verbs behind the HTTP API, the command line and the page."""
