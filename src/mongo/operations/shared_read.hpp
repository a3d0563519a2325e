// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "mongo/driver/conversation.hpp"
#include "mongo/operations/command_operation.hpp"

#include <boost/smart_ptr/intrusive_ptr.hpp>

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace colock::mongo::detail {

class shared_read;

/// An operation that reads the document of one key, in a `find` that others may share.
class key_reader : public command_operation
{
public:
    key_reader(client& owner, std::string key) : command_operation(owner), key_(std::move(key)) {}

    void fail(delivery how, failure_ptr why) final;
    [[nodiscard]] bool shares_read() const noexcept final { return true; }

    [[nodiscard]] const std::string& key() const noexcept { return key_; }
    void read_with(const std::shared_ptr<shared_read>& others) { read_ = others; }

    /// The read has failed for all, and nothing of it counts.
    void hear_failed(const answer& what) { answered(what, {}); }
    /// \param fields of the key's document
    /// \returns false if the reader needs a confirmation that nobody holds the key; otherwise it has ended
    [[nodiscard]] virtual bool hear_document(const bson_iter_t& fields) = 0;
    /// Nobody holds the key, and the server could have written after it had said so.
    virtual void hear_free() = 0;
    /// The reply was full before the document of this key: the next read is the key's alone.
    void hear_no_room();
    [[nodiscard]] bool reads_alone() const noexcept { return reads_alone_; }

private:
    void begin() final;

    const std::string key_;
    std::weak_ptr<shared_read> read_;
    bool reads_alone_ = false;
};

/// One read for several keys, on one connection: `hello`, which must show that the server takes writes; a `find`; and,
/// if a reader found no holder, a write that only a primary can have confirmed by a majority. Readers join until the
/// `find` is sent, so each is answered and confirmed by what was sent after it had joined.
///
/// This is a chain of callbacks, not a coroutine: it belongs to several operations, each of which may leave it or begin
/// again by itself between two commands.
///
/// Thread safety: none; belongs to the strand. Its questions keep it alive.
class shared_read final : public std::enable_shared_from_this<shared_read>
{
public:
    explicit shared_read(std::shared_ptr<client> owner) : owner_(std::move(owner)) {}

    /// Once, after the first reader has joined.
    void start();
    [[nodiscard]] bool takes_more() const noexcept;
    void add(key_reader& joined) { readers_.emplace_back(&joined); }
    /// It is not told.
    void leave(const key_reader& which);

private:
    using reader_ptr = boost::intrusive_ptr<key_reader>;

    void send(const std::shared_ptr<question>& what);
    [[nodiscard]] question::handler told_to(void (shared_read::*then)(const answer&));
    void greeted(const answer& got);
    void found(const answer& got);
    void confirm();
    void confirmed();
    void all_failed(const answer& got);

    const std::shared_ptr<client> owner_;
    std::vector<reader_ptr> readers_;
    conversation client_;
    bool is_open_ = true;
};

} // namespace colock::mongo::detail
