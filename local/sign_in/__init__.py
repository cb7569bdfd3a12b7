"""The link in the banner that signs a browser in."""
