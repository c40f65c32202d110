"""A model of few words, on loopback, for Claude Code, Codex and Gemini CLI: it has each run the
command of its own first argument by a tool, and is done then. Says at which port it is."""

import http.server
import json
import sys
from typing import Any

COMMAND = sys.argv[1]
Json = dict[str, Any]
_TOKENS = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}


class Model(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        pass

    def do_GET(self) -> None:
        self._answer("application/json", b"{}")

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        path = self.path.partition("?")[0]
        if path.endswith("/v1/messages"):
            self._stream(claude(asked))
        elif path.endswith("/responses"):
            self._stream(codex(asked))
        elif path.endswith(":streamGenerateContent"):
            self._stream([gemini(asked)])
        else:
            self.do_GET()

    def _stream(self, events: list[Json]) -> None:
        self._answer("text/event-stream", "".join(map(sent, events)).encode())

    def _answer(self, kind: str, body: bytes) -> None:
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def sent(event: Json) -> str:
    named = f"event: {event['type']}\n" if "type" in event else ""
    return f"{named}data: {json.dumps(event)}\n\n"


def claude(asked: Json) -> list[Json]:
    contents = [each["content"] for each in asked["messages"]]
    blocks = [each for content in contents if isinstance(content, list) for each in content]
    block: Json
    if any(each["type"] == "tool_result" for each in blocks) or "tools" not in asked:
        block, why = {"type": "text", "text": ""}, "end_turn"
        delta = {"type": "text_delta", "text": "done"}
    else:
        block, why = {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {}}, "tool_use"
        words = {"command": COMMAND, "description": "as it was told"}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(words)}
    message = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": asked["model"],
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": _TOKENS,
    }
    stop = {"stop_reason": why, "stop_sequence": None}
    return [
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": stop, "usage": _TOKENS},
        {"type": "message_stop"},
    ]


def codex(asked: Json) -> list[Json]:
    if any(each["type"] == "function_call_output" for each in asked["input"]):
        text = {"type": "output_text", "text": "done"}
        item: Json = {"type": "message", "id": "m1", "role": "assistant", "content": [text]}
    else:
        item = {
            "type": "function_call",
            "id": "f1",
            "call_id": "c1",
            "name": "exec_command",
            "arguments": json.dumps({"cmd": COMMAND}),
        }
    response = {"id": "r1", "status": "completed", "output": [item], "usage": _TOKENS}
    return [
        {"type": "response.created", "response": {"id": "r1"}},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": response},
    ]


def gemini(asked: Json) -> Json:
    is_done = "functionResponse" in json.dumps(asked["contents"])
    words = {"command": COMMAND, "description": "as it was told"}
    call = {"functionCall": {"name": "run_shell_command", "args": words}}
    content = {"role": "model", "parts": [{"text": "done"} if is_done else call]}
    return {"candidates": [{"content": content, "finishReason": "STOP", "index": 0}]}


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Model)
sys.stdout.write(f"{server.server_address[1]}\n")
sys.stdout.flush()
server.serve_forever()
