import { DATA_MODULES } from '@airlock/contract/defaults'

/** For a program of Python that lacks a module: what has it. */
export function missingModule({
  name,
  message,
}: {
  readonly name: string
  readonly message: string
}): string | undefined {
  if (name !== 'ModuleNotFoundError') return undefined
  const [module] = /^No module named '(\w+)/u.exec(message)?.slice(1) ?? []
  if (module === undefined) return undefined
  if (DATA_MODULES.some((one) => one === module)) return `the template data has ${module}: --template data`
  const ofDebian = `airlock template build NAME --package python3-${module.toLowerCase().replaceAll('_', '-')}`
  return `there is no module ${module} here. One of yours: --with ${module}.py. One of Debian: ${ofDebian}, then --template NAME`
}
