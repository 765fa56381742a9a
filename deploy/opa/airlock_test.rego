package airlock_test

import data.airlock
import rego.v1

question := {
	"point": "command.run",
	"tenant": "default",
	"actor": "key:abc",
	"role": "developer",
	"agent": "default",
	"sandbox": "sbx_1",
	"operation": {"kind": "command", "argv": ["ls"], "cwd": "/workspace", "env": [], "timeoutMs": 300000},
}

sandbox := {
	"kind": "sandbox",
	"template": "base",
	"tier": "standard",
	"limits": {"memoryBytes": 536870912, "cpus": 1, "pids": 256, "diskBytes": 1073741824},
	"labels": {},
	"lifetimeMs": 86400000,
	"mounts": [],
}

about(operation) := object.union(question, {"operation": operation})

test_allows_what_no_rule_speaks_of if {
	airlock.decision == {"effect": "allow"} with input as question
}

test_denies_writing_to_the_host if {
	decision := airlock.decision with input as about({"kind": "mount", "path": "/srv", "mode": "rw"})
	decision == {"effect": "deny", "risk": "high", "reasons": {"Nothing of the host is written to."}}
}

test_allows_reading_the_host if {
	airlock.decision == {"effect": "allow"} with input as about({"kind": "mount", "path": "/srv", "mode": "ro"})
}

test_denies_reading_keys if {
	decision := airlock.decision with input as about({"kind": "file", "action": "read", "path": "/workspace/a.pem"})
	decision.effect == "deny"
}

test_asks_about_large_sandboxes if {
	large := object.union(sandbox, {"limits": object.union(sandbox.limits, {"cpus": 16})})
	decision := airlock.decision with input as about(large)
	decision.effect == "ask"
	decision.reasons == {"A sandbox of 16 processors is for a person to allow."}
}

test_bounds_trainees if {
	asked := object.union(question, {"agent": "trainee-7"})
	airlock.decision == {"effect": "allow", "conditions": {"maxTimeoutMs": 60000}} with input as asked
}

test_raises_the_tier_of_what_nobody_trusts if {
	untrusted := object.union(sandbox, {"labels": {"trust": "none"}})
	airlock.decision == {"effect": "allow", "conditions": {"tier": "strict"}} with input as about(untrusted)
}
