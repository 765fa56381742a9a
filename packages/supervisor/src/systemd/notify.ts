import type { Environment } from '../config.ts'
import { run } from './systemctl.ts'

/** Tells systemd, if it started us and waits for that, that we are ready. Node cannot speak to its socket itself. */
export async function notifyReady(env: Environment, warn: (text: string) => void): Promise<void> {
  if (env['NOTIFY_SOCKET'] === undefined) return
  const { code, text } = await run('systemd-notify', ['--ready'])
  if (code !== 0) warn(`systemd was not told that we are ready: ${text}`)
}
