# The input of every question that Airlock asks, and an example of a decision. Change it to what your house wants; what is not
# allowed, asked or denied here is left to the policies of the server, for the strictest of all that have a say holds.
#
# input.point      what is wanted: command.run, step.run, file.read, file.write, sandbox.create, grant.add, key.create, …
# input.tenant     whose it is
# input.actor      who asks, as evidence names it: key:<id>, or sandbox:<id> for a program inside
# input.role       admin, operator, developer or auditor; sandbox for a program inside
# input.agent      the agent it is for, or null
# input.sandbox    the sandbox it is in, or null
# input.operation  what exactly, by its kind:
#   {"kind": "command", "argv": […], "cwd": "/workspace", "env": ["NAME"], "timeoutMs": 300000, "cpuTimeMs": 60000}
#   {"kind": "code", "runtime": "python", "code": "…", "timeoutMs": 300000}
#   {"kind": "file", "action": "read|write|list|mkdir|move|remove", "path": "/workspace/x", "to": "/workspace/y"}
#   {"kind": "mount", "path": "/srv/data", "mode": "ro|rw"}
#   {"kind": "sandbox", "template": "base", "tier": "standard", "limits": {…}, "labels": {…}, "lifetimeMs": 0, "mounts": […]}
#   {"kind": "network", "host": "example.com", "port": 443}
#   {"kind": "model", "model": "…"}
#   {"kind": "other", "payload": {…}}; of sandbox.ask: {"action": "…", "detail": {…}}
#
# The answer is an object: effect (allow, ask or deny), and as it likes risk (low, medium, high, critical), reasons (texts) and
# conditions (maxTimeoutMs, readOnly: true, tier: "strict"). {"allow": true|false, "reason": "…"} is understood too. No answer,
# a late one and any other one are a denial.
package airlock

import rego.v1

default decision := {"effect": "allow"}

decision := {"effect": "deny", "risk": "high", "reasons": denials} if count(denials) > 0

decision := {"effect": "ask", "risk": "medium", "reasons": asks} if {
	count(denials) == 0
	count(asks) > 0
}

decision := {"effect": "allow", "conditions": conditions} if {
	count(denials) == 0
	count(asks) == 0
	count(conditions) > 0
}

denials contains "Nothing of the host is written to." if {
	input.operation.kind == "mount"
	input.operation.mode == "rw"
}

denials contains "Keys of the house do not leave a sandbox." if {
	input.operation.kind == "file"
	input.operation.action == "read"
	endswith(input.operation.path, ".pem")
}

asks contains sprintf("A sandbox of %d processors is for a person to allow.", [input.operation.limits.cpus]) if {
	input.operation.kind == "sandbox"
	input.operation.limits.cpus > 8
}

# What agents in training do is bounded.
conditions["maxTimeoutMs"] := 60000 if {
	input.operation.kind in {"command", "code"}
	startswith(input.agent, "trainee-")
}

conditions["tier"] := "strict" if {
	input.operation.kind == "sandbox"
	input.operation.labels.trust == "none"
}
