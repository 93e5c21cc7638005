"""The module of this name in Nanobot, as far as the example uses it."""


class RuntimeContextBlock:
    def __init__(self, source, text):
        self.source, self.text = source, text


def public_history_message(message):
    return {"role": message["role"], "content": message.get("plain", message["content"])}
