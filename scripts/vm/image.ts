import { createHash } from 'node:crypto'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { runProgram } from './program.ts'

/** A Debian that boots: kernel, initial ram disk and root file system, none of which is ever written to. */
export interface Image {
  readonly kernel: string
  readonly initrd: string
  readonly root: string
}

const SUITE = 'bookworm'
const PACKAGES = 'systemd systemd-sysv udev dbus kmod procps linux-image-cloud-amd64'
  .concat(' crun python3 uidmap e2fsprogs util-linux mount')
  .split(' ')
/** Of the initial ram disk; everything else is built in or is loaded when root is there. */
const EARLY_MODULES = ['virtio_pci', 'virtio_blk']
/** What a machine of a few minutes does not need. */
const MASKED = 'apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer fstrim.timer'
  .concat(' e2scrub_reap.service getty@tty1.service serial-getty@ttyS0.service systemd-logind.service')
  .split(' ')
const UNIT = readFileSync(new URL('./inside/airlock-vm.service', import.meta.url), 'utf8')
const ROOT_BYTES = '4G'
const BOOTSTRAP_MS = 10 * 60_000
const STEP_MS = 5 * 60_000

/** Made once for each recipe and kept: in `AIRLOCK_VM_CACHE`, or /var/cache/airlock-vm, or the temporary directory. */
export async function ensureImage(note: (text: string) => void): Promise<Image> {
  const cache = cacheDirectory()
  const recipe = JSON.stringify([SUITE, PACKAGES, EARLY_MODULES, MASKED, UNIT, ROOT_BYTES])
  const name = `debian-${SUITE}-${createHash('sha256').update(recipe).digest('hex').slice(0, 12)}`
  const directory = join(cache, name)
  if (!existsSync(directory)) {
    note(`making a Debian ${SUITE} in ${directory}, which takes some minutes, once`)
    const building = join(cache, `building-${process.pid}`)
    try {
      await build(building)
      keep(building, directory)
    } finally {
      await remove(building)
    }
  }
  return {
    kernel: join(directory, 'vmlinuz'),
    initrd: join(directory, 'initrd.img'),
    root: join(directory, 'root.img'),
  }
}

/** Somebody else may have made the same one meanwhile: then theirs stays. */
function keep(building: string, directory: string): void {
  try {
    renameSync(building, directory)
  } catch (error) {
    if (!existsSync(directory)) throw error
  }
}

/** A debootstrap that was cut off leaves file systems of the kernel mounted, which must not be emptied. */
async function remove(building: string): Promise<void> {
  const mounts = readFileSync('/proc/self/mountinfo', 'utf8')
    .split('\n')
    .map((line) => line.split(' ')[4] ?? '')
    .filter((path) => path.startsWith(`${building}/`))
  for (const path of mounts.toReversed()) await runProgram(['umount', '-l', path], { limitMs: STEP_MS })
  rmSync(building, { recursive: true, force: true })
}

function cacheDirectory(): string {
  const wanted = process.env['AIRLOCK_VM_CACHE'] ?? '/var/cache/airlock-vm'
  try {
    mkdirSync(wanted, { recursive: true })
    return wanted
  } catch (error) {
    if (process.env['AIRLOCK_VM_CACHE'] !== undefined) throw error
    // Not ours to write: the image is made again when the temporary directory is cleaned.
    const instead = join(tmpdir(), 'airlock-vm')
    mkdirSync(instead, { recursive: true })
    return instead
  }
}

async function build(directory: string): Promise<void> {
  const root = join(directory, 'root')
  mkdirSync(root, { recursive: true })
  const bootstrap = async () => {
    const mirror = process.env['AIRLOCK_VM_MIRROR']
    const debootstrap = ['debootstrap', '--variant=minbase', `--include=${PACKAGES.join(',')}`, SUITE, root]
    await runProgram(mirror === undefined ? debootstrap : [...debootstrap, mirror], { limitMs: BOOTSTRAP_MS })
  }
  // Mirrors fail at times; what was fetched is used again.
  await bootstrap().catch(bootstrap)
  configure(root)
  await runProgram(['chroot', root, 'update-initramfs', '-u'], { limitMs: STEP_MS })
  for (const name of ['vmlinuz', 'initrd.img']) renameSync(newest(join(root, 'boot'), name), join(directory, name))
  await makeDisk(root, join(directory, 'root.img'), ROOT_BYTES)
  rmSync(root, { recursive: true, force: true })
}

function configure(root: string): void {
  const units = join(root, 'etc/systemd/system')
  writeFileSync(join(root, 'etc/hostname'), 'airlock-vm\n')
  writeFileSync(join(root, 'etc/hosts'), '127.0.0.1 localhost airlock-vm\n')
  rmSync(join(root, 'etc/resolv.conf'), { force: true })
  writeFileSync(join(root, 'etc/initramfs-tools/conf.d/airlock'), 'MODULES=list\nCOMPRESS=gzip\n')
  writeFileSync(join(root, 'etc/initramfs-tools/modules'), EARLY_MODULES.map((name) => `${name}\n`).join(''))
  writeFileSync(join(units, 'airlock-vm.service'), UNIT)
  symlinkSync('../airlock-vm.service', join(units, 'multi-user.target.wants', 'airlock-vm.service'))
  for (const name of MASKED) {
    rmSync(join(units, name), { force: true })
    symlinkSync('/dev/null', join(units, name))
  }
  // Packages that were installed are not needed again.
  rmSync(join(root, 'var/cache/apt/archives'), { recursive: true, force: true })
}

function newest(directory: string, prefix: string): string {
  const name = readdirSync(directory)
    .filter((entry) => entry.startsWith(`${prefix}-`))
    .toSorted()
    .at(-1)
  if (name === undefined) throw new TypeError(`debootstrap left no ${prefix} in ${directory}`)
  chmodSync(join(directory, name), 0o644)
  return join(directory, name)
}

/** A file system with what is in the directory. */
export async function makeDisk(directory: string, path: string, size: string): Promise<void> {
  rmSync(path, { force: true })
  await runProgram(['truncate', '-s', size, path], { limitMs: STEP_MS })
  await runProgram(['mkfs.ext4', '-q', '-F', '-O', '^has_journal', '-d', directory, path], { limitMs: STEP_MS })
}
