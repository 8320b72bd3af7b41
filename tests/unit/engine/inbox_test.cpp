// The way of requests into a loop.
#include "engine/inbox.h"

#include <doctest/doctest.h>

#include <thread>

using namespace kernwright::engine;

TEST_CASE("inbox: requests are numbered, taken once, and refused above the limit") {
  Inbox inbox(2);
  Request request;
  request.choices = 3;
  CHECK(inbox.submit(request) == 1);
  CHECK(inbox.submit(request) == 2);
  CHECK(inbox.submit(request) == 0);
  CHECK(inbox.waiting() == 2);
  inbox.cancel({1});
  const Inbox::Contents taken = inbox.take();
  CHECK(taken.submitted.size() == 2);
  CHECK(taken.cancelled.size() == 1);
  CHECK(inbox.take().submitted.empty());
  CHECK(inbox.submit(request) == 0);  // taken ones wait still
  inbox.count_started(1);
  CHECK(inbox.submit(request) == 3);
  CHECK(inbox.has_work());
  inbox.count_ended(9);
  CHECK_FALSE(inbox.has_work());
}

TEST_CASE("inbox: a wait ends with a request, and with a wake before it or in it") {
  Inbox inbox(0);
  inbox.wake();
  inbox.wait_for_work();
  std::thread other([&] { inbox.wake(); });
  inbox.wait_for_work();
  other.join();
  std::thread another([&] { inbox.submit({}); });
  inbox.wait_for_work();
  another.join();
  CHECK(inbox.has_work());
}
