// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

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
    [[nodiscard]] static std::shared_ptr<Adapter> make(const asio::any_io_executor& executor, Settings settings)
    {
        auto result = std::make_shared<Adapter>(executor);
        adapter_base& base = *result;
        base.client_ =
            Client::make(executor, std::move(settings), std::shared_ptr<colock::contact>(result, &base.contact()));
        return result;
    }

    void start_extend(claim_ptr claim, std::chrono::milliseconds ttl, completion<extend_outcome> done) final
    {
        client_->submit(make_extend(*client_, std::move(claim), ttl, std::move(done)));
    }

    void start_is_valid(claim_ptr claim, completion<valid_outcome> done) final
    {
        client_->submit(make_is_valid(*client_, std::move(claim), std::move(done)));
    }

    void start_close(lease_clock::duration deadline, completion<close_outcome> done) override
    {
        client_->close(deadline, std::move(done));
    }
    void cancel_close() noexcept override { client_->cancel_close(); }

protected:
    [[nodiscard]] Client& get_client() const noexcept { return *client_; }
    [[nodiscard]] adapter_limits limits() const noexcept
    {
        return {.operation_timeout = client_->config().operation_timeout};
    }

private:
    std::shared_ptr<Client> client_;
};

} // namespace colock::inline v0::remote
