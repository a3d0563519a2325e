// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <string_view>

namespace colock::mongo::detail {

/// Before anything else of the driver's. Once is enough.
///
/// Thread safety: safe.
void start_driver();

/// What the driver would write to stderr.
class driver_log
{
public:
    virtual void on_log(std::string_view message) noexcept = 0;

    /// As long as it lives, what the driver says on this thread is told to one; what it says elsewhere, to nobody.
    class listener
    {
    public:
        explicit listener(driver_log& to) noexcept;
        ~listener();
        listener(const listener&) = delete;
        listener& operator=(const listener&) = delete;

    private:
        driver_log* const before_;
    };

protected:
    driver_log() = default;
    ~driver_log() = default;
};

} // namespace colock::mongo::detail
