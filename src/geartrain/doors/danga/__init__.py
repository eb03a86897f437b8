"""The door for Danga's draft of 2005: applications and workers of the protocol that Gearman's grew from."""
