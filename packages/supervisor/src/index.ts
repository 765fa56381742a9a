export { serve, type ServeIo } from './serve.ts'
