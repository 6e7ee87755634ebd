#ifndef KILN_SERVER_ACCEPT_LOOP_H_
#define KILN_SERVER_ACCEPT_LOOP_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>

#include "proto/file_descriptor.h"
#include "server/event_loop.h"
#include "server/listen_socket.h"

namespace kiln {

// What serves one accepted connection. Destroyed on the reaper's thread once
// the peer has hung up; the destructor may block.
class Connection {
 public:
  virtual ~Connection() = default;
  // The daemon drains: tell the peer. Called on the loop's thread.
  virtual void StopServing() {}
};

// Accepts Unix connections on a thread of its own and watches each for
// hang-up. gRPC's listener is not used because it stops accepting for good
// when descriptors run out, lets anyone in, and cannot be limited.
//
// A connection gets its server only when its first bytes have arrived; one
// that stays silent costs a descriptor and is closed after a while. Peers of
// other users are closed at once.
class AcceptLoop {
 public:
  struct Options {
    int max_connections = 512;
    std::chrono::milliseconds handshake_timeout{10'000};
  };
  struct Counters {
    int64_t accepted = 0;
    int64_t refused_limit = 0;        // max_connections reached
    int64_t refused_user = 0;         // another uid
    int64_t refused_descriptors = 0;  // no descriptor left
    int64_t timed_out = 0;            // sent nothing
  };

  // Makes what serves a connection, on the loop's thread; null closes it.
  using Factory =
      std::function<std::unique_ptr<Connection>(FileDescriptor, const Peer&)>;

  AcceptLoop(ListenSocket socket, Options options, Factory factory);
  // Closes everything; returns when every connection is destroyed.
  ~AcceptLoop();
  AcceptLoop(const AcceptLoop&) = delete;
  AcceptLoop& operator=(const AcceptLoop&) = delete;

  // Closes the listening socket and tells connections to stop serving.
  void StopAccepting();

  // Connections that are open now, silent ones included.
  int open_connections() const { return open_connections_; }
  Counters counters() const;

 private:
  struct Client {
    FileDescriptor watched;  // what the loop watches; the server has its own
    Peer peer;
    EventLoop::Id watch = 0;
    EventLoop::Id deadline = 0;
    std::unique_ptr<Connection> connection;  // null while silent
  };
  using ClientId = uint64_t;

  void AcceptAll();
  void RefuseWithReserve();
  void Admit(FileDescriptor fd);
  void OnReady(ClientId id, uint32_t events);
  void Serve(ClientId id, Client& client);
  void Drop(ClientId id);
  void CloseSocket();

  const Options options_;
  const Factory factory_;
  std::unique_ptr<ListenSocket> socket_;  // null once closed
  FileDescriptor reserve_;  // given up to accept and close when none is left
  EventLoop::Id socket_watch_ = 0;
  std::unordered_map<ClientId, Client> clients_;
  ClientId last_id_ = 0;

  std::atomic<int> open_connections_{0};
  std::atomic<int64_t> accepted_{0};
  std::atomic<int64_t> refused_limit_{0};
  std::atomic<int64_t> refused_user_{0};
  std::atomic<int64_t> refused_descriptors_{0};
  std::atomic<int64_t> timed_out_{0};

  EventLoop reaper_;  // destroys connections
  EventLoop loop_;    // everything else here
};

}  // namespace kiln

#endif  // KILN_SERVER_ACCEPT_LOOP_H_
