// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "mongo/operations/command_chain.hpp"
#include "mongo/operations/command_operation.hpp"

#include <boost/smart_ptr/intrusive_ptr.hpp>

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace colock::inline v0::mongo::detail {

class shared_read;

/// An operation that reads the document of one key, in a `find` that other operations may share.
class key_reader : public command_operation
{
public:
    key_reader(operation_client& owner, std::string key) : command_operation(owner), key_(std::move(key)) {}

    void fail(delivery request_state, failure_ptr failure) final;
    [[nodiscard]] bool shares_read() const noexcept final { return true; }

    [[nodiscard]] const std::string& key() const noexcept { return key_; }
    void set_read(const std::shared_ptr<shared_read>& others) { read_ = others; }

    /// Reports that the read has failed for all operations, and that none of its results counts.
    void on_error(const answer& result) { answered(result, {}); }
    /// Reports that the key has a document.
    /// \param result the answer that contains the document
    /// \param fields fields of the document
    /// \returns false if nobody holds the key, so that a confirmation is needed; otherwise the operation has ended
    [[nodiscard]] virtual bool on_document(const answer& result, const bson_iter_t& fields) = 0;
    /// Reports that nobody holds the key, and that the server was still the primary after the read.
    virtual void on_not_held() = 0;
    /// Reports that the reply was full before the document of this key. The next read is for this key alone.
    void on_reply_full();
    [[nodiscard]] bool reads_alone() const noexcept { return reads_alone_; }

private:
    void begin() final;

    const std::string key_;
    std::weak_ptr<shared_read> read_;
    bool reads_alone_ = false;
};

/// One read of several keys, on one connection. It consists of a command that reads the server's clock and must show
/// that the server accepts writes, and of a `find`. If a reader finds no holder, a write follows, which only a primary
/// can have confirmed by a majority. Readers join until the `find` is sent, so each reader is answered and confirmed by
/// commands that were sent after it had joined.
///
/// This is a chain of callbacks, not a coroutine: it belongs to several operations, each of which may be removed or
/// begin again by itself between two commands.
///
/// Thread safety: none; belongs to the strand. Its commands keep it alive.
class shared_read final : public std::enable_shared_from_this<shared_read>
{
public:
    explicit shared_read(std::shared_ptr<operation_client> owner) : owner_(std::move(owner)) {}

    /// Must be called once, after the first reader has joined.
    void start();
    [[nodiscard]] bool accepts_readers() const noexcept;
    void add(key_reader& reader) { readers_.emplace_back(&reader); }
    /// Removes a reader, which is not notified any more.
    void remove(const key_reader& which);

private:
    using reader_ptr = boost::intrusive_ptr<key_reader>;

    void send(const std::shared_ptr<callback_command>& command);
    [[nodiscard]] callback_command::handler handler_for(void (shared_read::*then)(const answer&));
    void on_clock(const answer& result);
    void on_documents(const answer& result);
    void confirm();
    void on_confirmed();
    void fail_all(const answer& result);

    const std::shared_ptr<operation_client> owner_;
    std::vector<reader_ptr> readers_;
    command_chain chain_;
    bool is_open_ = true;
};

} // namespace colock::inline v0::mongo::detail
