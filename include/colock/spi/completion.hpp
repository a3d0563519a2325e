// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/detail/requirements.hpp>

#include <boost/smart_ptr/intrusive_ptr.hpp>

#include <concepts>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

namespace colock::inline v0 {

/// Function object that an adapter calls with the outcome when an operation has ended. Move-only; called at most once.
///
/// It may be called inside the call that started the operation, or later from any thread. If it is destroyed without
/// having been called, the execution context of the operation no longer exists, and nobody is notified.
template <class Outcome>
class completion
{
public:
    completion() noexcept = default;

    /// Makes a completion from any move-constructible function object. Allocates memory.
    template <class Function>
        requires(!std::same_as<std::remove_cvref_t<Function>, completion> &&
                    std::invocable<std::remove_cvref_t<Function>, Outcome>)
    completion(Function&& function)
        : state_(new std::remove_cvref_t<Function>(std::forward<Function>(function))),
          act_(&act_on_function<std::remove_cvref_t<Function>>)
    {
    }

    /// Makes a completion that calls a member function of a reference-counted object. Allocates no memory.
    template <auto Member, class Object>
    [[nodiscard]] static completion bind(boost::intrusive_ptr<Object> object) noexcept
    {
        completion bound;
        bound.state_ = object.detach();
        bound.act_ = &act_on_member<Member, Object>;
        return bound;
    }

    /// Makes a completion that stores the outcome in `slot`. Only for an operation that certainly ends while `slot`
    /// exists, as with `capabilities::immediate`.
    [[nodiscard]] static completion into(std::optional<Outcome>& slot) noexcept
    {
        completion bound;
        bound.state_ = &slot;
        bound.act_ = [](void* state, Outcome* outcome) {
            if (outcome)
                static_cast<std::optional<Outcome>*>(state)->emplace(std::move(*outcome));
        };
        return bound;
    }

    /// Takes over the function of `other`, which is empty afterwards.
    completion(completion&& other) noexcept
        : state_(std::exchange(other.state_, nullptr)), act_(std::exchange(other.act_, nullptr))
    {
    }
    completion& operator=(completion&& other) noexcept
    {
        completion(std::move(other)).swap(*this);
        return *this;
    }
    ~completion()
    {
        if (act_)
            act_(state_, nullptr);
    }

    /// Returns whether the object holds a function that has not been called.
    [[nodiscard]] explicit operator bool() const noexcept { return act_ != nullptr; }

    /// Calls the function with the outcome. The object is empty afterwards.
    void operator()(Outcome outcome)
    {
        const auto act = std::exchange(act_, nullptr);
        act(std::exchange(state_, nullptr), &outcome);
    }

    /// Exchanges the functions of two objects.
    void swap(completion& other) noexcept
    {
        std::swap(state_, other.state_);
        std::swap(act_, other.act_);
    }

private:
    template <class Function>
    static void act_on_function(void* state, Outcome* outcome)
    {
        std::unique_ptr<Function> function(static_cast<Function*>(state));
        if (!outcome)
            return;
        // The object is freed before its function is called, so that an operation which the function starts can reuse
        // the memory.
        Function local(std::move(*function));
        function.reset();
        std::move(local)(std::move(*outcome));
    }
    template <auto Member, class Object>
    static void act_on_member(void* state, Outcome* outcome)
    {
        const boost::intrusive_ptr<Object> object(static_cast<Object*>(state), false);
        if (outcome)
            ((*object).*Member)(std::move(*outcome));
    }

    void* state_ = nullptr;
    void (*act_)(void*, Outcome*) = nullptr;
};

} // namespace colock::inline v0
