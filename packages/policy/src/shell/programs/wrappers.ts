import type { Look } from '../started.ts'
import { splitOptions } from './options.ts'

/** Programs that start another one: which of their options take a value, and how many words stand before it. */
const PLAIN: Readonly<Record<string, { readonly valued?: readonly string[]; readonly skip?: number }>> = {
  nice: { valued: ['-n', '--adjustment'] },
  nohup: {},
  setsid: {},
  ionice: { valued: ['-c', '-n', '-p', '--class', '--classdata'] },
  chrt: { skip: 1 },
  taskset: { skip: 1 },
  timeout: { valued: ['-s', '-k', '--signal', '--kill-after'], skip: 1 },
  time: { valued: ['-f', '-o', '--format', '--output'] },
  stdbuf: { valued: ['-i', '-o', '-e'] },
  unbuffer: {},
  builtin: {},
  exec: { valued: ['-a'] },
  strace: { valued: ['-o', '-e', '-p', '-s', '-u'] },
  ltrace: { valued: ['-o', '-e', '-p', '-s', '-u'] },
  doas: { valued: ['-u', '-C'] },
  sudo: { valued: ['-u', '-g', '-h', '-p', '-C', '-r', '-t', '-U', '-D', '-R', '-T', '--user', '--group'] },
  pkexec: { valued: ['--user'] },
  chroot: { skip: 1 },
  unshare: { valued: ['-S', '-G'] },
  nsenter: { valued: ['-t', '--target', '-S', '-G'] },
  setpriv: { valued: ['--reuid', '--regid', '--groups'] },
  capsh: {},
  fakeroot: {},
  proxychains: {},
  proxychains4: {},
  torsocks: {},
  firejail: {},
  catchsegv: {},
  gdb: { valued: ['-ex', '-x'] },
  valgrind: {},
  'xvfb-run': {},
  numactl: {},
  'dbus-run-session': {},
  'systemd-run': { valued: ['-p', '-u', '--unit', '--property'] },
  'start-stop-daemon': {},
  rlwrap: {},
  busybox: {},
  toybox: {},
  cpulimit: { valued: ['-l', '-p'] },
  prlimit: {},
  chronic: {},
  eatmydata: {},
  nocache: {},
  entr: {},
  sshpass: { valued: ['-p', '-f', '-d'] },
  choom: { valued: ['-n', '-p'] },
  faketime: { skip: 1 },
  gosu: { skip: 1 },
  'su-exec': { skip: 1 },
  setarch: { skip: 1 },
  linux32: {},
  linux64: {},
  'dumb-init': {},
  tini: {},
  screen: { valued: ['-S', '-t', '-c'] },
}

/** Those without a say of their own: a rule has to cover what they start, not them. */
const TRANSPARENT = new Set([
  'nice',
  'nohup',
  'setsid',
  'ionice',
  'chrt',
  'taskset',
  'timeout',
  'time',
  'stdbuf',
  'unbuffer',
  'builtin',
  'exec',
  'busybox',
  'toybox',
])

function plain(name: string): Look {
  const { valued = [], skip = 0 } = PLAIN[name] ?? {}
  return ({ words, stdin, sources }, shell) => {
    const { rest } = splitOptions(words, valued)
    const argv = rest.slice(skip)
    const isCovered = TRANSPARENT.has(name)
    if (argv.length === 0) return {}
    return { output: shell.start(argv, { stdin, sources }), isCovered }
  }
}

const command: Look = ({ words, stdin, sources }, shell) => {
  const { options, rest } = splitOptions(words, [])
  if (options.some((option) => /^-[pvV]*[vV]/u.test(option)) || rest.length === 0) return {}
  return { output: shell.start(rest, { stdin, sources }), isCovered: true }
}

/** `env -i NAME=VALUE program …`; `-S` is split as a line. */
const env: Look = ({ words, stdin, sources }, shell) => {
  const line = words.findIndex((word) => /^-[a-zA-Z]*S|^--split-string/u.test(word))
  if (line >= 0) {
    const glued = (words[line] ?? '').replace(/^(?:-[a-zA-Z]*S|--split-string=?)/u, '')
    const text = [glued, ...words.slice(line + 1)].filter((word) => word !== '').join(' ')
    return { output: shell.run(text, { positionals: [], stdin }), isCovered: true }
  }
  const { rest } = splitOptions(words, ['-u', '--unset', '-C', '--chdir'])
  const at = rest.findIndex((word) => !/^[A-Za-z_]\w*=/u.test(word))
  const assigns = (at < 0 ? rest : rest.slice(0, at)).map((word) => word.slice(0, word.indexOf('=')))
  if (at < 0) return { assigns }
  return { output: shell.start(rest.slice(at), { stdin, sources }), assigns, isCovered: true }
}

const flock: Look = ({ words, stdin, sources }, shell) => {
  const { rest } = splitOptions(words, ['-w', '-E', '--timeout'])
  const [, ...argv] = rest
  if (argv[0] === '-c') shell.run(argv[1] ?? '', { positionals: [], stdin })
  else if (argv.length > 0) shell.start(argv, { stdin, sources })
  return { isCovered: true }
}

/** `gdb -ex 'shell …'`, and the program that it runs. */
const debug: Look = (started, shell) => {
  for (const word of started.words) {
    const line = /^(?:shell\s|!)(.+)$/su.exec(word)?.[1]
    if (line !== undefined) shell.run(line, { positionals: [] })
  }
  return plain('gdb')(started, shell)
}

/** `uv run program …` and its like. */
function runner(subcommand: string): Look {
  return ({ words, stdin, sources }, shell) => {
    const at = words.indexOf(subcommand)
    const { rest } = splitOptions(words.slice(at + 1), ['-n', '-p', '--name', '--python', '--with'])
    if (at < 0 || rest.length === 0) return {}
    return { output: shell.start(rest, { stdin, sources }) }
  }
}

export const WRAPPERS: Readonly<Record<string, Look>> = {
  ...Object.fromEntries(Object.keys(PLAIN).map((name) => [name, plain(name)])),
  command,
  env,
  flock,
  gdb: debug,
  'cross-env': env,
  dotenv: env,
  uv: runner('run'),
  poetry: runner('run'),
  pipenv: runner('run'),
  hatch: runner('run'),
  conda: runner('run'),
  bundle: runner('exec'),
}
