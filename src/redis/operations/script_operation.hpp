// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "redis/failures.hpp"
#include "redis/operations/client_operation.hpp"
#include "redis/scripts/scripts.hpp"

#include <utility>

namespace colock::inline v0::redis::detail {

/// An operation that runs one script. Sends the digest first, and the whole script if the server does not know the
/// digest. The reply of this script is the last one. The script that raises the fence counter may be in front of it: if
/// the server does not know that one, the operation is not repeated, because it was executed.
class script_operation : public client_operation
{
public:
    using client_operation::client_operation;

    void write(boost::redis::request& request) final { push(request, form_); }
    void complete(delivery status, failure_ptr failure) final
    {
        if (status != delivery::answered) {
            failed(status, std::move(failure));
        } else if (form_ == script::form::digest && is_noscript(replies.back())) {
            form_ = script::form::whole;
            resubmit();
        } else {
            answered();
        }
    }

protected:
    virtual void push(boost::redis::request& request, script::form form) = 0;
    virtual void answered() = 0;
    virtual void failed(delivery status, failure_ptr failure) = 0;

    [[nodiscard]] script::form form() const noexcept { return form_; }

private:
    script::form form_ = script::form::digest;
};

} // namespace colock::inline v0::redis::detail
