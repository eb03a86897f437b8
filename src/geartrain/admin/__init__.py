"""Seeing into the server and steering it: views for people and machines, and the verbs behind every button."""
