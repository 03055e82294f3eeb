"""The clients of a2a-sdk 1.x against a live server, over JSON-RPC and REST."""

import logging
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / 'python/lib'))
from interop import use_venv

use_venv('a2a-1')
sys.path.insert(0, str(HERE / 'lib'))

import httpx
import scenarios
from a2a.client import ClientConfig, ClientFactory
from a2a.types import a2a_pb2 as pb
from google.protobuf.json_format import MessageToDict, ParseDict
from live import Recording, run

logging.disable(logging.CRITICAL)


class Client:
    """One of the SDK's for streams, one without, made by its factory; A2A 1.0's JSON in and out."""

    def __init__(self, streaming, plain, tenant):
        self.streaming, self.plain, self.tenant = streaming, plain, tenant
        self.card = MessageToDict(plain._card)

    def request(self, kind, **members):
        return ParseDict({**({'tenant': self.tenant} if self.tenant else {}), **members}, kind())

    async def send(self, message, immediately=False):
        request = self.request(pb.SendMessageRequest, message=message, configuration={'returnImmediately': immediately})
        async for answer in self.plain.send_message(request):
            return MessageToDict(answer)

    async def stream(self, message):
        async for event in self.streaming.send_message(self.request(pb.SendMessageRequest, message=message)):
            yield MessageToDict(event)

    async def get(self, id, history=None):
        more = {} if history is None else {'historyLength': history}
        return MessageToDict(await self.plain.get_task(self.request(pb.GetTaskRequest, id=id, **more)))

    async def list(self, **filters):
        answer = await self.plain.list_tasks(self.request(pb.ListTasksRequest, **filters))
        return {'tasks': [], **MessageToDict(answer)}

    async def cancel(self, id):
        return MessageToDict(await self.plain.cancel_task(self.request(pb.CancelTaskRequest, id=id)))

    async def subscribe(self, id):
        async for event in self.streaming.subscribe(self.request(pb.SubscribeToTaskRequest, id=id)):
            yield MessageToDict(event)

    async def set_push(self, id):
        return await self.plain.create_task_push_notification_config(
            self.request(pb.TaskPushNotificationConfig, taskId=id, id='p', url='https://example.com/push'))

    async def extended_card(self):
        return MessageToDict(await self.plain.get_extended_agent_card(self.request(pb.GetExtendedAgentCardRequest)))


class Kind:
    def __init__(self, binding, legacy=False):
        self.binding, self.rpc, self.streams, self.opened = binding, binding == 'JSONRPC', [], []
        self.legacy, self.version = legacy, '0.3' if legacy else '1.0'
        self.name = f'a2a-sdk 1.3.0 {"in 0.3 " if legacy else ""}over {"JSON-RPC" if self.rpc else "REST"}'

    async def open(self, url, token=None, tenant=None):
        headers = {'Authorization': f'Bearer {token}'} if token else {}
        http = httpx.AsyncClient(transport=Recording(self.streams), headers=headers, timeout=60)
        self.opened.append(http)
        streaming, plain = [
            await ClientFactory(ClientConfig(httpx_client=http, supported_protocol_bindings=[self.binding], streaming=s)).create_from_url(url)
            for s in (True, False)]
        return Client(streaming, plain, tenant)

    async def close(self):
        for http in self.opened:
            await http.aclose()
        self.opened.clear()

    def error(self, e):
        return type(e).__name__

    def wanted(self, name, stream=False, resubscribe=False):
        """Over REST this SDK knows errors by their reason (0.3: their type); what has none is just an error."""
        if name == 'InvalidParamsError' and not self.rpc and not self.legacy:
            return 'A2AClientError'
        return name


scenarios.KINDS += [Kind('JSONRPC'), Kind('HTTP+JSON'), Kind('JSONRPC', legacy=True), Kind('HTTP+JSON', legacy=True)]
scenarios.define()
run('a2a-sdk 1.3.0')
