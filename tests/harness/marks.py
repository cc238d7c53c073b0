"""The secrets that tests use. All begin with one word that stands nowhere else, so that a search through everything that
was printed, logged, shown or served finds each of them.

Whoever needs a token, a password or a value that lockward must never show takes it from here.
"""
MARK = "marked-secret-"

ADMIN_TOKEN = MARK + "admin-token"
WRONG_TOKEN = MARK + "wrong-token"
UPSTREAM_PASSWORD = MARK + "upstream-password"
USER_PASSWORD = MARK + "user-password"
WRONG_PASSWORD = MARK + "wrong-password"
DEFAULT_PASSWORD = MARK + "default-password"
LOCK_VALUE = MARK + "lock-value"
STORED_VALUE = MARK + "stored-value"
SCRIPT_ARGUMENT = MARK + "script-argument"
