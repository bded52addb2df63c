"""Reports as JSON, PNG and one self-contained HTML page."""
