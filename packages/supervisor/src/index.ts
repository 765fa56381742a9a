export { linkCommand } from './command/link.ts'
export { uninstall } from './command/uninstall.ts'
export { serve, type ServeIo } from './serve.ts'
export { installService, serviceStatus, uninstallService } from './systemd/install.ts'
