// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "remote/adapter/purpose.hpp"

#include <colock/spi/adapter.hpp>
#include <colock/spi/claim.hpp>
#include <colock/spi/contact.hpp>

#include <boost/asio/any_io_executor.hpp>

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace colock::inline v0::remote {

/// Base of the adapters of all servers. It owns a client, submits one client operation per adapter operation, and
/// passes its contact to the client.
///
/// The operations are made by functions such as `make_extend`, which are found by argument-dependent lookup in the
/// namespace of the client.
template <class Client>
class adapter_base : public adapter
{
public:
    explicit adapter_base(asio::any_io_executor executor) : adapter(std::move(executor)) {}
    ~adapter_base() override
    {
        if (client_)
            client_->retire();
    }

    template <class Adapter, class Settings>
    [[nodiscard]] static std::shared_ptr<Adapter> make(const asio::any_io_executor& executor, Settings checked)
    {
        auto made = std::make_shared<Adapter>(executor);
        adapter_base& base = *made;
        base.client_ =
            Client::make(executor, std::move(checked), std::shared_ptr<colock::contact>(made, &base.contact()));
        return made;
    }

    [[nodiscard]] adapter_limits limits() const noexcept final
    {
        adapter_limits all;
        all.answers_within = client_->config().operation_timeout;
        return all;
    }

    void start_release(claim_ptr claim, completion<release_outcome> done) final
    {
        release_or_abandon(std::move(claim), release_guarantee::released, std::move(done));
    }

    void start_abandon(claim_ptr claim, completion<release_outcome> done) final
    {
        release_or_abandon(std::move(claim), release_guarantee::settled, std::move(done));
    }

    void start_extend(claim_ptr claim, std::chrono::milliseconds ttl, completion<extend_outcome> done) final
    {
        client_->submit(make_extend(*client_, std::move(claim), ttl, std::move(done)));
    }

    void start_is_valid(claim_ptr claim, completion<valid_outcome> done) final
    {
        client_->submit(make_is_valid(*client_, std::move(claim), std::move(done)));
    }

    void start_inspect(std::string key, completion<list_outcome> done) final
    {
        if (auto refused = refuse_key(key))
            done({.error = std::move(refused)});
        else
            client_->submit(
                make_key_listing(*client_, std::move(key), key_purpose::inspect, filter{}, std::move(done)));
    }

    void start_break(std::string key, completion<list_outcome> done) final
    {
        if (auto refused = refuse_key(key))
            done({.error = std::move(refused)});
        else
            client_->submit(make_key_listing(*client_, std::move(key), key_purpose::remove, filter{}, std::move(done)));
    }

    void start_list(filter which, std::string cursor, completion<list_outcome> done) final
    {
        if (auto refused = which.key ? refuse_key(*which.key) : nullptr) {
            done({.error = std::move(refused)});
        } else if (which.key && cursor.empty()) {
            auto key = *which.key;
            client_->submit(
                make_key_listing(*client_, std::move(key), key_purpose::inspect, std::move(which), std::move(done)));
        } else {
            list_all(std::move(which), std::move(cursor), std::move(done));
        }
    }

    void start_close(lease_clock::duration deadline, completion<closed> done) final
    {
        client_->close(deadline, std::move(done));
    }
    void cancel_close() noexcept final { client_->cancel_close(); }

protected:
    [[nodiscard]] Client& get_client() const noexcept { return *client_; }

private:
    /// Releases or abandons a claim that was made in this process.
    /// \param guarantee what a successful answer must guarantee
    virtual void release_or_abandon(claim_ptr claim, release_guarantee guarantee, completion<release_outcome> done) = 0;
    /// Returns why no lock can have this key, or null if the key is valid.
    [[nodiscard]] virtual failure_ptr refuse_key(std::string_view key) const
    {
        static_cast<void>(key);
        return nullptr;
    }
    /// Lists the holders of all keys.
    virtual void list_all(filter which, std::string cursor, completion<list_outcome> done) = 0;

    std::shared_ptr<Client> client_;
};

} // namespace colock::inline v0::remote
