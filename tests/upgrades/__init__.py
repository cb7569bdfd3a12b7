"""What a released version has written is read by the next one."""
