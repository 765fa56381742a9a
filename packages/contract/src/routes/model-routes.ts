import { z } from 'zod'
import { llmStatus, model } from '../nouns/model.ts'
import { READERS, type Route } from './route.ts'

export const MODEL_API_ROUTES = {
  listModels: {
    method: 'GET',
    path: '/v1/models',
    needs: 'serving',
    repeats: 'safe',
    summary: 'Models that sandboxes may name, with their prices.',
    roles: READERS,
    answers: 'json',
    response: z.strictObject({ items: z.array(model) }),
    errors: [],
  },
  getLlmStatus: {
    method: 'GET',
    path: '/v1/llm/status',
    needs: 'serving',
    repeats: 'safe',
    summary: 'Upstreams of models with the state of their keys and breakers, and the calls of your tenant under way.',
    roles: READERS,
    answers: 'json',
    response: llmStatus,
    errors: ['door_unavailable'],
  },
} as const satisfies Record<string, Route>
