"""The door for Danga's draft of 2005, the predecessor of the Gearman protocol."""
