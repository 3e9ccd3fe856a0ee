"""A reviewer of Countersign in plain Python, over gRPC: waits, reads, objects, approves, resolves, confirms."""

import argparse
import os
import pathlib
import sys
import time
import uuid

import grpc
from google.rpc import error_details_pb2
from grpc_status import rpc_status

from countersign.v1 import listen_pb2, listen_pb2_grpc, resources_pb2, review_pb2, review_pb2_grpc

# How long a lost server is waited for before each further try, in seconds; the last one stays.
PAUSES = (0.1, 0.2, 0.5, 1, 2, 5)


class Reviewer:
    """A member who reviews: each kind of obligation has a method that discharges it."""

    def __init__(self, channel, token, word):
        self.reviews = review_pb2_grpc.ReviewServiceStub(channel)
        self.listens = listen_pb2_grpc.ListenServiceStub(channel)
        self.metadata = (("authorization", f"Bearer {token}"),)
        self.word = word
        self.member = self.call(self.reviews.GetStatus, review_pb2.GetStatusRequest()).member

    def call(self, method, request):
        """One call; a write gets an id of its own, so that it could be asked again."""
        if "request_id" in request.DESCRIPTOR.fields_by_name:
            request.request_id = str(uuid.uuid4())
        return method(request, metadata=self.metadata, timeout=30)

    def wait(self):
        """Listens, and acts on each wake, until the connection ends."""
        request = listen_pb2.ListenRequest(stays=True)
        for said in self.listens.Listen(request, metadata=self.metadata):
            if said.WhichOneof("said") != "waking":
                continue
            waking = said.waking
            for owed in waking.obligations:
                self.discharge(owed)
            # Only now: a reviewer that is killed before is woken again, with the same wake.
            shown = [o.id for o in waking.obligations]
            taken = listen_pb2.AcknowledgeRequest(wake=waking.wake, obligations=shown, sequence=waking.sequence)
            self.call(self.listens.Acknowledge, taken)

    def discharge(self, owed):
        act = getattr(self, owed.kind.replace("-", "_"), None)
        if act is None:
            say(f"owes {owed.kind} {owed.subject}, which is not for this reviewer: {owed.command}")
            return
        try:
            act(owed)
        except grpc.RpcError as error:
            # A refusal is an answer: the state moved on, and what is owed now comes with the next wake.
            codes = refusals(error)
            if not codes:
                raise
            say(f"refused {', '.join(codes)}: {error.details()}")

    def review(self, owed):
        """Reads the version that is asked for, and votes on exactly that one."""
        version, places = self.read(owed.subject)
        if places:
            text = f"An added line holds {self.word}: it can't be in what is published."
            request = review_pb2.ObjectRequest(reference=version.reference, text=text, at=places)
            answer = self.call(self.reviews.Object, request)
            say(f"objected to {answer.reference} with {answer.objection} at {', '.join(places)}")
            return
        # An own objection to an earlier version is answered by this one, or it would have been objected to.
        opened = resources_pb2.OBJECTION_STATUS_OPEN
        own = [o.id for o in version.objections if o.by == self.member and o.status == opened]
        ran = resources_pb2.Run(command=f"git diff | grep '^+.*{self.word}'", exit=1, output="")
        request = review_pb2.ApproveRequest(reference=version.reference, ran=[ran], resolve=own)
        answer = self.call(self.reviews.Approve, request)
        say(f"approved {answer.reference}" + (f" and resolved {', '.join(own)}" if own else ""))

    def confirm(self, owed):
        answer = self.call(self.reviews.Confirm, review_pb2.ConfirmRequest(reference=owed.subject))
        waits = ", ".join(answer.waiting_for)
        say(f"confirmed {owed.subject}, which is " + ("complete" if answer.complete else f"waiting for {waits}"))

    def read(self, subject):
        """The version with its exact reference, and the places in it that hold the word."""
        shown = self.call(self.reviews.Show, review_pb2.ShowRequest(subject=subject))
        reference = shown.version.reference
        diff = self.call(self.reviews.Diff, review_pb2.DiffRequest(subject=reference)).text
        return shown.version, list(added_places(diff, self.word))


def added_places(diff, word):
    """Where a unified diff adds a line that holds the word, as PATH:LINE."""
    path, line = None, 0
    for text in diff.splitlines():
        if text.startswith("+++ "):
            path = text[4:].removeprefix("b/")
        elif text.startswith("@@ "):
            line = int(text.split("+")[1].split(",")[0].split(" ")[0])
        elif text.startswith("+"):
            if word in text:
                yield f"{path}:{line}"
            line += 1
        elif text.startswith(" "):
            line += 1


def refusals(error):
    """The codes with which the server refused; none where it was something else that failed."""
    status = rpc_status.from_call(error)
    codes = []
    for detail in status.details if status else ():
        info = error_details_pb2.ErrorInfo()
        if detail.Unpack(info):
            codes.append(info.reason)
    return codes


def say(text):
    print(text, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--word", default="FIXME", help="what no added line may hold (FIXME)")
    word = parser.parse_args().word
    try:
        address = os.environ["COUNTERSIGN_ADDR"]
        token = pathlib.Path(os.environ["COUNTERSIGN_TOKEN_FILE"]).read_text().strip()
    except KeyError as missing:
        sys.exit(f"{missing.args[0]} is not set")
    tries = 0
    with grpc.insecure_channel(address) as channel:
        reviewer = None
        while True:
            try:
                reviewer = reviewer or Reviewer(channel, token, word)
                reviewer.wait()
                tries = 0
            except grpc.RpcError as error:
                # The server is away or begins anew: what was not acknowledged comes again.
                if error.code() != grpc.StatusCode.UNAVAILABLE:
                    sys.exit(f"{error.code().name}: {error.details()}")
                time.sleep(PAUSES[min(tries, len(PAUSES) - 1)])
                tries += 1


if __name__ == "__main__":
    main()
