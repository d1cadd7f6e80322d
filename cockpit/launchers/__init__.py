"""One module a launcher: a run profile becomes argv, environment, ports and readiness. Pure."""
