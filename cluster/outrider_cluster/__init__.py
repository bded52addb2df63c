"""The cluster: config, Serve application, gateway, controller and CLI."""
