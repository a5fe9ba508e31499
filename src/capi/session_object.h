// What a session's handle stands for, and how a call takes hold of it.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "akunu/akunu.h"
#include "capi/objects.h"

namespace akunu::capi {

struct SessionObject {
  std::shared_ptr<ModelObject> model;
  std::vector<uint32_t> tokens = {};
  std::mutex mutex = {};  // held by the call that uses it
};

struct UsedSession {
  std::shared_ptr<SessionObject> session;
  std::unique_lock<std::mutex> lock;

  SessionObject* operator->() const { return session.get(); }
};

// Throws HandleError, and BusyError where another call is at it: a callback that waited for the call it
// is called by would wait for ever.
UsedSession use(akunu_session handle);

}  // namespace akunu::capi
