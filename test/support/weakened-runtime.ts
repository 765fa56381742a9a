import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'

/**
 * Positive controls: an OCI runtime that removes one line of the bundle before it hands over to crun. Which line is in a
 * file beside it. The product has no such switch, and refuses what such a runtime makes where the kernel shows it.
 */
export const WEAKENINGS = {
  none: `pass`,
  'no-seccomp': `config['linux'].pop('seccomp'); forget_filter()`,
  'allow-all-seccomp': `config['linux']['seccomp'] = {'defaultAction': 'SCMP_ACT_ALLOW'}; forget_filter()`,
  'writable-root': `config['root']['readonly'] = False`,
  'no-network-namespace': `drop_namespace('network')`,
  'no-pid-namespace': `drop_namespace('pid'); share_proc()`,
  'no-ipc-namespace': `drop_namespace('ipc')`,
  'no-uts-namespace': `drop_namespace('uts'); config.pop('hostname')`,
  'new-privileges': `config['process']['noNewPrivileges'] = False`,
  'more-capabilities': `config['process']['capabilities']['bounding'].append('CAP_NET_RAW')`,
  'no-read-only-paths': `config['linux']['readonlyPaths'] = []`,
  'set-uid-mounts': `allow_set_uid('/tmp')`,
  'no-masked-paths': `config['linux']['maskedPaths'] = []`,
  'shared-host-directory': `config['mounts'].append({'destination': '/tmp/shared', 'type': 'bind', 'source': os.path.dirname(os.path.realpath(sys.argv[0])), 'options': ['bind', 'ro']})`,
  'no-pids-limit': `raise_limit('pids', 'pids.max', 'max')`,
  'no-memory-limit': `raise_limit('memory', 'memory.memsw.limit_in_bytes', '-1'); raise_limit('memory', 'memory.limit_in_bytes', '-1'); raise_limit('memory', 'memory.max', 'max')`,
} as const
export type Weakening = keyof typeof WEAKENINGS

/** Answers the path of the runtime; each start of a sandbox with it lacks the line that was chosen last. */
export async function writeWeakenedRuntime(directory: string, weakening: Weakening): Promise<string> {
  const path = join(directory, 'crun')
  await writeFile(join(directory, 'weaken'), weakening)
  await writeFile(path, SCRIPT, { mode: 0o755 })
  return path
}

const CASES = Object.entries(WEAKENINGS).map(([name, edit]) => `    if weaken == '${name}': ${edit}`)

const SCRIPT = `#!/usr/bin/python3
import json, os, sys

REAL = '/usr/bin/crun'

def bundle_of(argv):
    for flag in ('--bundle', '-b'):
        if flag in argv:
            return argv[argv.index(flag) + 1]
    for word in argv:
        if word.startswith('--bundle='):
            return word.split('=', 1)[1]

def weakening():
    with open(os.path.join(os.path.dirname(os.path.realpath(sys.argv[0])), 'weaken')) as chosen:
        return chosen.read()

# What crun compiled for an earlier sandbox would count instead of the profile.
def forget_filter():
    config.pop('annotations', None)

def drop_namespace(kind):
    config['linux']['namespaces'] = [n for n in config['linux']['namespaces'] if n['type'] != kind]

# Only the owner of a pid namespace may mount its /proc.
def share_proc():
    for mount in config['mounts']:
        if mount['destination'] == '/proc':
            mount.update({'type': 'bind', 'source': '/proc', 'options': ['rbind', 'ro']})

def allow_set_uid(destination):
    for mount in config['mounts']:
        if mount['destination'] == destination:
            mount['options'] = [option for option in mount['options'] if option != 'nosuid'] + ['suid']

def raise_limit(controller, name, value):
    for line in open('/proc/self/mountinfo'):
        left, right = line.rstrip().split(' - ')
        kind, _, options = right.split(' ')[:3]
        if kind not in ('cgroup', 'cgroup2') or (kind == 'cgroup' and controller not in options.split(',')):
            continue
        for entry in open('/proc/self/cgroup'):
            number, controllers, path = entry.rstrip().split(':', 2)
            if (controller in controllers.split(',')) if kind == 'cgroup' else number == '0':
                mounted = left.split(' ')
                target = os.path.join(find_group(mounted[4]), 'user', name)
                if os.path.exists(target):
                    open(target, 'w').write(value)

def find_group(mount):
    sandbox = os.path.basename(os.path.dirname(os.path.realpath(bundle)))
    for parent in os.listdir(mount):
        if parent.startswith('airlock-') and os.path.isdir(os.path.join(mount, parent, sandbox)):
            return os.path.join(mount, parent, sandbox)
    return '/nonexistent'

bundle = bundle_of(sys.argv)
if bundle:
    path = os.path.join(bundle, 'config.json')
    config = json.load(open(path))
    weaken = weakening()
${CASES.join('\n')}
    json.dump(config, open(path, 'w'))
os.execv(REAL, [REAL] + sys.argv[1:])
`
