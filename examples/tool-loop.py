# An agent loop on this machine: the model asks for Python, a sandbox runs it, the model goes on with what it printed.
# Needs the client in Python (python/README.md) and nothing else; any endpoint of the OpenAI kind will do.
#   OPENAI_API_KEY=… MODEL=gpt-5 python3 examples/tool-loop.py "What is the 30th prime?"
import json, os, sys, urllib.request

from airlock_sandbox import Airlock

MAX_TURNS = 20
MAX_CHARACTERS = 10_000
RUN_CODE = {
    "type": "function",
    "function": {
        "name": "run_code",
        "description": "Run Python that remembers between calls. There is no network. "
        "Answers what it printed and the value of the last expression.",
        "parameters": {
            "type": "object",
            "properties": {"code": {"type": "string"}},
            "required": ["code"],
            "additionalProperties": False,
        },
    },
}


def ask_model(messages):
    url = os.environ.get("OPENAI_BASE_URL", "https://api.openai.com/v1") + "/chat/completions"
    body = {"model": os.environ.get("MODEL", "gpt-5"), "messages": messages, "tools": [RUN_CODE]}
    headers = {"authorization": "Bearer " + os.environ["OPENAI_API_KEY"], "content-type": "application/json"}
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=600) as answer:
        return json.load(answer)["choices"][0]["message"]


def run_call(session, call):
    """A call that cannot be run is an answer for the model, not the end of the loop."""
    if call.get("function", {}).get("name") != "run_code":
        return "There is no such tool."
    try:
        code = json.loads(call["function"]["arguments"])["code"]
    except (ValueError, KeyError, TypeError):
        return 'The arguments must be {"code": "…"}.'
    result = session.run(code)
    # Code that fails is a result too: the model reads the traceback and tries again.
    traceback = result.error["traceback"] if result.error else None
    said = [result.stdout, result.stderr, result.text, traceback]
    return "\n".join(text for text in said if text)[:MAX_CHARACTERS] or "(no output)"


def main(task):
    messages = [{"role": "user", "content": task}]
    template = os.environ.get("TEMPLATE", "data")
    with Airlock().sessions.create("python", create={"template": template}) as session:
        for _ in range(MAX_TURNS):
            message = ask_model(messages)
            messages.append(message)
            calls = message.get("tool_calls") or []
            if not calls:
                return message["content"]
            for call in calls:
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": run_call(session, call)})
    raise SystemExit(f"The model did not finish in {MAX_TURNS} turns.")


print(main(sys.argv[1] if len(sys.argv) > 1 else "What is 6 * 7?"))
