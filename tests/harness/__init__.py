"""What the Python tests share: a RESP connection (resp) and the processes they start (processes)."""
