builtin eval "$__airlock_code"
