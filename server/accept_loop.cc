#include "server/accept_loop.h"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <cerrno>
#include <utility>

namespace kiln {
namespace {

// While no descriptor is left; shorter would spin.
constexpr std::chrono::milliseconds kDescriptorPause{50};

FileDescriptor OpenReserve() {
  return FileDescriptor(open("/dev/null", O_RDONLY | O_CLOEXEC));
}

int AcceptOn(int fd) {
  return accept4(fd, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
}

bool OutOfDescriptors(int error) {
  return error == EMFILE || error == ENFILE || error == ENOBUFS ||
         error == ENOMEM;
}

}  // namespace

AcceptLoop::AcceptLoop(ListenSocket socket, Options options, Factory factory)
    : options_(options),
      factory_(std::move(factory)),
      socket_(std::make_unique<ListenSocket>(std::move(socket))),
      reserve_(OpenReserve()),
      reaper_("kiln-reap"),
      loop_("kiln-accept") {
  loop_.Post([this] {
    socket_watch_ =
        loop_.Watch(socket_->fd(), EPOLLIN, [this](uint32_t) { AcceptAll(); });
  });
}

AcceptLoop::~AcceptLoop() {
  loop_.Post([this] {
    CloseSocket();
    while (!clients_.empty()) Drop(clients_.begin()->first);
  });
  loop_.Stop();
  reaper_.Stop();
}

void AcceptLoop::StopAccepting() {
  loop_.Post([this] {
    CloseSocket();
    for (auto& [id, client] : clients_) {
      if (client.connection) client.connection->StopServing();
    }
  });
}

void AcceptLoop::CloseSocket() {
  if (!socket_) return;
  loop_.Unwatch(socket_watch_);
  socket_.reset();
}

AcceptLoop::Counters AcceptLoop::counters() const {
  return {accepted_, refused_limit_, refused_user_, refused_descriptors_,
          timed_out_};
}

void AcceptLoop::AcceptAll() {
  for (;;) {
    const int fd = AcceptOn(socket_->fd());
    if (fd >= 0) {
      Admit(FileDescriptor(fd));
    } else if (OutOfDescriptors(errno)) {
      return RefuseWithReserve();
    } else if (errno != EINTR && errno != ECONNABORTED) {
      return;
    }
  }
}

// A connection that cannot be accepted would stay at the head of the queue and
// its peer would wait for ever.
void AcceptLoop::RefuseWithReserve() {
  reserve_.Reset();
  FileDescriptor refused(AcceptOn(socket_->fd()));
  if (refused.valid() && refused_descriptors_++ == 0) {
    spdlog::warn("Refusing connections: out of descriptors");
  }
  if (!refused.valid()) {
    loop_.SetEvents(socket_watch_, 0);
    loop_.After(kDescriptorPause, [this] {
      if (socket_) loop_.SetEvents(socket_watch_, EPOLLIN);
    });
  }
  refused.Reset();
  reserve_ = OpenReserve();
}

void AcceptLoop::Admit(FileDescriptor fd) {
  const absl::StatusOr<Peer> peer = PeerOf(fd.get());
  if (!peer.ok() || peer->uid != geteuid()) {
    if (refused_user_++ == 0) {
      spdlog::warn("Refusing a connection of another user");
    }
    return;
  }
  if (static_cast<int>(clients_.size()) >= options_.max_connections) {
    if (refused_limit_++ == 0) {
      spdlog::warn("Refusing connections beyond the limit ({})",
                   options_.max_connections);
    }
    return;
  }
  ++accepted_;
  const ClientId id = ++last_id_;
  Client& client = clients_[id];
  client.watched = std::move(fd);
  client.peer = *peer;
  client.watch =
      loop_.Watch(client.watched.get(), EPOLLIN | EPOLLRDHUP,
                  [this, id](uint32_t events) { OnReady(id, events); });
  client.deadline = loop_.After(options_.handshake_timeout, [this, id] {
    ++timed_out_;
    spdlog::info("Dropping a connection of pid {} that says nothing for {} ms",
                 clients_.at(id).peer.pid, options_.handshake_timeout.count());
    Drop(id);
  });
  open_connections_ = clients_.size();
}

void AcceptLoop::OnReady(ClientId id, uint32_t events) {
  const auto found = clients_.find(id);
  if (found == clients_.end()) return;
  if ((events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) return Drop(id);
  Serve(id, found->second);
}

void AcceptLoop::Serve(ClientId id, Client& client) {
  loop_.CancelTimer(client.deadline);
  loop_.SetEvents(client.watch, EPOLLRDHUP);
  FileDescriptor duplicate(fcntl(client.watched.get(), F_DUPFD_CLOEXEC, 0));
  if (!duplicate.valid()) {
    ++refused_descriptors_;
    return Drop(id);
  }
  client.connection = factory_(std::move(duplicate), client.peer);
  if (!client.connection) Drop(id);
}

void AcceptLoop::Drop(ClientId id) {
  const auto found = clients_.find(id);
  if (found == clients_.end()) return;
  loop_.CancelTimer(found->second.deadline);
  loop_.Unwatch(found->second.watch);
  std::shared_ptr<Connection> connection = std::move(found->second.connection);
  clients_.erase(found);
  open_connections_ = clients_.size();
  if (connection) reaper_.Post([connection = std::move(connection)] {});
}

}  // namespace kiln
