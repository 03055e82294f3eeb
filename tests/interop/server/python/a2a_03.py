"""The clients of a2a-sdk 0.3.x against a live server, over JSON-RPC and REST."""

import logging
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / 'python/lib'))
from interop import use_venv

use_venv('a2a-03')
sys.path.insert(0, str(HERE / 'lib'))

import httpx
import scenarios
from a2a.client import ClientConfig, ClientFactory
from a2a.client.errors import A2AClientHTTPError, A2AClientJSONRPCError
from a2a.types import Message, MessageSendConfiguration, PushNotificationConfig, TaskIdParams, TaskPushNotificationConfig, TaskQueryParams
from live import Recording, run
from lib.shapes import message_03, to_1

logging.disable(logging.CRITICAL)


def plain(model):
    return model.model_dump(mode='json', by_alias=True, exclude_none=True)


def event_of(answer):
    """The SDK returns a Message, or the Task so far with the new event."""
    new = answer if isinstance(answer, Message) else answer[1] or answer[0]
    return to_1(plain(new), 'event', '0.3')


class Client:
    """One of the SDK's for streams, one without, made by its factory; A2A 1.0's JSON in and out."""

    def __init__(self, streaming, plain_one):
        self.streaming, self.plain = streaming, plain_one
        self.card = plain(plain_one._card)

    async def send(self, message, immediately=False):
        configuration = MessageSendConfiguration(blocking=not immediately)
        async for answer in self.plain.send_message(Message.model_validate(message_03(message)), configuration=configuration):
            return event_of(answer)

    async def stream(self, message):
        async for answer in self.streaming.send_message(Message.model_validate(message_03(message))):
            yield event_of(answer)

    async def get(self, id, history=None):
        return to_1(plain(await self.plain.get_task(TaskQueryParams(id=id, history_length=history))), 'get', '0.3')

    async def cancel(self, id):
        return to_1(plain(await self.plain.cancel_task(TaskIdParams(id=id))), 'cancel', '0.3')

    async def subscribe(self, id):
        async for answer in self.streaming.resubscribe(TaskIdParams(id=id)):
            yield event_of(answer)

    async def set_push(self, id):
        config = PushNotificationConfig(id='p', url='https://example.com/push')
        return await self.plain.set_task_callback(TaskPushNotificationConfig(task_id=id, push_notification_config=config))

    async def extended_card(self):
        return plain(await self.plain.get_card())


CODES = {-32001: 'TaskNotFoundError', -32002: 'TaskNotCancelableError', -32003: 'PushNotificationNotSupportedError',
         -32004: 'UnsupportedOperationError', -32602: 'InvalidParamsError'}


class Kind:
    version, legacy = '0.3', False

    def __init__(self, binding):
        self.binding, self.rpc, self.streams, self.opened = binding, binding == 'JSONRPC', [], []
        self.name = f'a2a-sdk 0.3.26 over {"JSON-RPC" if self.rpc else "REST"}'

    async def open(self, url, token=None):
        headers = {'Authorization': f'Bearer {token}'} if token else {}
        http = httpx.AsyncClient(transport=Recording(self.streams), headers=headers, timeout=60)
        self.opened.append(http)
        streaming, plain_one = [
            await ClientFactory.connect(url, ClientConfig(httpx_client=http, supported_transports=[self.binding], streaming=s))
            for s in (True, False)]
        return Client(streaming, plain_one)

    async def close(self):
        for http in self.opened:
            await http.aclose()
        self.opened.clear()

    def error(self, e):
        if isinstance(e, A2AClientJSONRPCError):
            return CODES.get(e.error.code, e.error.code)
        return f'HTTP {e.status_code}' if isinstance(e, A2AClientHTTPError) else repr(e)

    def wanted(self, name, stream=False, resubscribe=False):
        """This SDK reads no more of a REST error than its status. Over JSON-RPC errors of streams are events."""
        if self.rpc:
            return name
        return 'HTTP 404' if name == 'TaskNotFoundError' and not resubscribe else 'HTTP 400'


scenarios.KINDS += [Kind('JSONRPC'), Kind('HTTP+JSON')]
scenarios.define()
run('a2a-sdk 0.3.26')
