/** What a system or a person cannot do without; what lies in places of everyday work is left out. */
export const VITAL: readonly string[] = [
  '/',
  '/[*]',
  '/.[*]',
  '/bin/**',
  '/boot/**',
  '/dev/**',
  '!/dev/shm/**',
  '/etc/**',
  '/home',
  '/home/*',
  '/home/*/[*]',
  '/home/*/.[*]',
  '/lib/**',
  '/lib32/**',
  '/lib64/**',
  '/opt',
  '/opt/[*]',
  '/proc/**',
  '/root/**',
  '/sbin/**',
  '/srv',
  '/sys/**',
  '/usr/**',
  '!/usr/local/*/**',
  '/var',
  '/var/[*]',
  '/var/lib',
  '/var/lib/[*]',
  '/var/log/**',
]

export const BLOCK_DEVICES: readonly string[] = [
  '/dev/sd*',
  '/dev/hd*',
  '/dev/vd*',
  '/dev/xvd*',
  '/dev/nvme*',
  '/dev/mmcblk*',
  '/dev/loop*',
  '/dev/dm-*',
  '/dev/md*',
  '/dev/mapper/**',
  '/dev/disk/**',
  '/dev/mem',
  '/dev/kmem',
]

/** Files with the secrets of the system. */
export const SYSTEM_SECRETS: readonly string[] = [
  '/etc/shadow*',
  '/etc/gshadow*',
  '/etc/sudoers',
  '/etc/sudoers.d/**',
  '/proc/[0-9]*/environ',
  '/proc/[*]/environ',
  '/proc/[0-9]*/mem',
  '/proc/kcore',
  '/run/secrets/kubernetes.io/**',
  '/var/run/secrets/kubernetes.io/**',
]

/** Where the files of another process begin. */
export const FOREIGN_ROOTS: readonly string[] = ['root', 'cwd', 'fd'].map((name) => `/proc/[0-9]*/${name}/**`)

/** Files with the secrets of a person. */
export const PERSONAL_SECRETS: readonly string[] = ['/home/*', '/root'].flatMap((home) => [
  `${home}/.ssh`,
  `${home}/.ssh/id_*`,
  `${home}/.ssh/[*]`,
  `${home}/.aws/**`,
  `${home}/.azure/**`,
  `${home}/.config/gcloud/**`,
  `${home}/.config/gh/**`,
  `${home}/.gnupg/**`,
  `${home}/.kube/**`,
  `${home}/.docker/config.json`,
  `${home}/.netrc`,
  `${home}/.git-credentials`,
  `${home}/.pypirc`,
  `${home}/.pgpass`,
])

/** Sockets of what runs containers: who may write to one is root. */
export const RUNTIME_SOCKETS: readonly string[] = [
  '/var/run/docker.sock',
  '/run/docker.sock',
  '/run/containerd/**',
  '/var/run/containerd/**',
  '/run/crio/**',
  '/run/podman/**',
  '/var/run/crio/**',
]

export const LOOPBACK: readonly string[] = ['localhost', '127.*', '::1', '0.0.0.0', '*.localhost']

/** The same where somebody tells a program what to look at. */
export const LOCAL_TARGETS: readonly string[] = [
  ...LOOPBACK,
  ...['http://', 'https://'].flatMap((scheme) => LOOPBACK.map((host) => `${scheme}${host}*`)),
  'http://[[]::1]*',
]

export const SHELLS: readonly string[] = ['sh', 'bash', 'dash', 'zsh', 'ksh', 'ash', 'fish']

export const CONNECTORS: readonly string[] = ['nc', 'ncat', 'netcat', 'nc.traditional', 'nc.openbsd', 'socat', 'telnet']
