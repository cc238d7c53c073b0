"""What the Python tests share: a RESP connection (resp), the processes they start (processes), libraries that they need
(installing)."""
