// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis/connection/exchange.hpp"

#include <utility>

namespace colock::inline v0::redis::detail {

namespace {

class exchange_operation final : public operation
{
public:
    using writer = std::function<void(boost::redis::request&)>;
    using reader = std::function<void(delivery, const reply_list&)>;

    exchange_operation(writer writes, reader reads) : writes_(std::move(writes)), reads_(std::move(reads)) {}

    void write(boost::redis::request& request) override { writes_(request); }
    void end(operation_ptr, delivery how, failure_ptr) override { reads_(how, replies); }

private:
    writer writes_;
    reader reads_;
};

} // namespace

void exchange(const std::shared_ptr<server_connection>& on, std::function<void(boost::redis::request&)> writes,
    std::function<void(delivery, const reply_list&)> reads)
{
    auto sent = std::make_unique<batch>();
    sent->add(std::make_unique<exchange_operation>(std::move(writes), std::move(reads)));
    sent->write_request({}, {});
    auto& request = sent->request();
    auto* const reading = sent.get();
    on->exec(request, reader_of(*reading, *on),
        [on, sent = std::move(sent)](const error_code&, std::size_t) { sent->finish(nullptr); });
}

} // namespace colock::inline v0::redis::detail
