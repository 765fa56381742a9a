export { serve, type ServeIo } from './serve.ts'
export { installService, serviceStatus, uninstallService } from './systemd/install.ts'
