"""Tables, charts and pictures, whatever they show."""
