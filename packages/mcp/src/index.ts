export { McpHttp } from './http.ts'
export {
  parseRequest,
  type AnyRequest,
  type RouteEvent,
  type RouteRequest,
  type Routes,
  type StreamedRoute,
} from './routes.ts'
export { ERROR_KEY } from './server.ts'
export { TOOLS } from './table.ts'
