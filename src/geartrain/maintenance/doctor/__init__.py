"""What `geartrain doctor` looks at: settings, the store's place and file, ports, and what this runs on."""
