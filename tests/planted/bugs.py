"""The bugs that the promise tests were seen to catch, so that everyone can see it again.

A bug is one edit of a file under src/streamgauge. Each test named here must fail with it, and says
so in its docstring: "Seen to catch: the bug's name; the name of another." A test with parameters
may be named with one set of them, where the others take long.
"""

from typing import NamedTuple


class Bug(NamedTuple):
    """`old`, which the file holds exactly once, becomes `new`."""

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]


LAWS = "tests/laws/test_sketches.py::"
DOOR = "tests/sketches/test_door.py::"
GRID = "tests/sketches/test_wavegrid.py::"
GOLDEN = "tests/golden/test_golden.py::test_sketches_write_the_bytes_they_wrote"
BITS = "tests/kernels/test_wavebits.py::"
HASHES = "tests/kernels/test_hashing.py::"
WAVES = "tests/kernels/test_wave.py::"
FUZZ = "tests/fuzz/test_from_bytes.py::"
REFUSED = "tests/fuzz/test_refusals.py::test_a_contradiction_is_refused"
QUERIES = "tests/test_queries.py::"
CERTAIN = "tests/guarantees/test_wave.py::"
SLICE = "tests/guarantees/test_campaigns.py::"
ECM = "tests/guarantees/test_ecm.py::"
LOG = "tests/sketches/test_log.py::"
SLIDING = "tests/test_sliding.py::"
PERIODIC = "tests/protocols/test_periodic.py::"

TWIN = f"{WAVES}test_the_kernels_store_and_answer_what_their_twin_does"
ALIKE = f"{WAVES}test_weights_runs_and_single_arrivals_are_one_and_the_same"
HEAVIEST = f"{WAVES}test_the_largest_weights_are_as_many_arrivals"
SUFFIXES = f"{WAVES}test_the_error_is_below_its_bound_for_every_suffix"
SPELLED = f"{BITS}test_the_bytes_are_as_described_and_hold_all_that_can_be_asked"
EVERY_RANGE = f"{CERTAIN}test_every_range_at_every_moment"
ANY_STREAM = f"{CERTAIN}test_any_stream_in_batches_against_the_oracle"
ALL_ITEMS = f"{ECM}test_what_is_certain_holds_for_all_items_at_all_times"
ALL_CUTS = f"{ECM}test_what_is_certain_holds_for_weights_batches_and_cuts"
FOUND = f"{ECM}test_an_item_is_found_within_its_interval"
WORST = f"{ECM}test_the_stream_that_fails_most_often_fails_as_rarely_as_promised"
JOINED = f"{ECM}test_a_self_join_is_at_least_its_lower_end"
WORST_JOIN = f"{ECM}test_the_self_join_that_fails_most_often_fails_as_rarely_as_promised"
UNION = f"{ECM}test_several_sites_answer_for_the_union_of_their_streams"
SITES = f"{ECM}test_several_sites_keep_the_interval_of_one"

MERGING = "tests/sketches/test_merging.py::"
ATOMIC = "tests/sketches/test_atomic.py::"
REORDER = "tests/sketches/test_reorder.py::"
UNIONS = "tests/guarantees/test_merging.py::"
MERGED_WAVES = f"{UNIONS}test_merged_waves_enclose_the_union_and_go_on"
MERGED_RANGES = f"{UNIONS}test_every_range_of_merged_waves"
JOINED_WAVES = f"{UNIONS}test_joined_waves_enclose_the_whole_stream"
MERGED_SKETCHES = f"{UNIONS}test_merged_and_gathered_sketches_enclose_the_union"
JOINED_SKETCHES = f"{UNIONS}test_joined_sketches_enclose_the_whole_stream"
ARRIVALS_CUT = (
    "tests/guarantees/test_arrivals.py::test_a_weight_is_as_many_arrivals_in_a_row_however_cut"
)
OVER = "tests/guarantees/test_ecm_counters.py::"
COUNTERS = f"{OVER}test_an_item_is_found_within_its_interval"

BUGS = (
    # --- the kernels ---
    Bug(
        "the oldest live rank is pushed out without growth",
        "kernels/wave.py",
        "if rank > safe and stamps[",
        "if rank > safe + safe and stamps[",
        (TWIN, ALIKE),
    ),
    Bug(
        "a run grows one arrival too late",
        "kernels/wave.py",
        "left = ticks[begin + gone - before - 1]\n",
        "left = ticks[begin + gone - before - 1] - 1\n",
        (ALIKE, EVERY_RANGE),
    ),
    Bug(
        "a weight does not grow the wave by what it pushes out itself",
        "kernels/wave.py",
        "left = stamp - step * (after - gone)\n",
        "left = 0\n",
        (HEAVIEST,),
    ),
    Bug(
        "a weight is cut off at 32 bits",
        "kernels/wave.py",
        "after = before + weight\n",
        "after = before + (weight & 0xFFFFFFFF)\n",
        (HEAVIEST,),
    ),
    Bug(
        "a weight is written as the newest rank of each level alone",
        "kernels/wave.py",
        "range(max(first, last - slots + 1), last + 1):\n            came",
        "range(max(first, last), last + 1):\n            came",
        (f"{LAWS}test_a_weight_is_as_many_events", TWIN, ALIKE, EVERY_RANGE),
    ),
    Bug(
        "growth takes odd ranks for even ones",
        "kernels/wave.py",
        "level = top + 1 - (place & 1)",
        "level = top + (place & 1)",
        (TWIN, SUFFIXES, EVERY_RANGE, ANY_STREAM, SPELLED),
    ),
    Bug(
        "an expired stamp answers",
        "kernels/wave.py",
        "> cutoff:\n            live = rank",
        ">= cutoff:\n            live = rank",
        (TWIN, SUFFIXES, EVERY_RANGE, ANY_STREAM, ALL_ITEMS, ALL_CUTS),
    ),
    Bug(
        "a level answers with one rank less than it keeps",
        "kernels/wave.py",
        "return _rank_at(_newest_place(count, level, levels) - kept + 1, level, levels)",
        "return _rank_at(_newest_place(count, level, levels) - kept + 2, level, levels)",
        (TWIN, SUFFIXES, EVERY_RANGE),
    ),
    Bug(
        "a followed bracket stands though its ranks are not kept",
        "kernels/wave.py",
        "stands = _is_kept(lower, count, levels, kept)",
        "stands = True",
        (f"{SLIDING}test_a_step_answers_as_the_question_does",),
    ),
    Bug(
        "stamps are moved with their base by a tick too few",
        "kernels/wave.py",
        "stamps[i] = max(stamps[i] - by, 0)",
        "stamps[i] = max(stamps[i] - by + 1, 0)",
        (TWIN,),
    ),
    Bug(
        "the bytes hold expired stamps",
        "kernels/wavebits.py",
        "if stamp == 0 or stamp <= now - window:",
        "if stamp == 0:",
        (SPELLED, GOLDEN),
    ),
    Bug(
        "the gaps come in blocks of 16",
        "kernels/bitpack.py",
        "BLOCK = 8\n",
        "BLOCK = 16\n",
        (SPELLED, GOLDEN),
    ),
    Bug(
        "bytes after the end are read over",
        "kernels/wavebits.py",
        "if not _is_end(words, at, data.size):",
        "if not _is_end(words, at, (at + 7) >> 3):",
        (f"{FUZZ}test_every_beginning_is_too_short_and_every_longer_one_too_long",),
    ),
    Bug(
        "more stamps than ranks are let in",
        "kernels/wavebits.py",
        "        if live > stored:\n            return IMPOSSIBLE\n",
        "",
        (f"{FUZZ}test_flipped_bits",),
    ),
    Bug(
        "a stamp from before the window is let in",
        "kernels/wavebits.py",
        "if stamp <= now - window or stamp > now:",
        "if stamp > now:",
        (REFUSED,),
    ),
    Bug(
        "the halves of a word change places",
        "kernels/hashing.py",
        "((a + (word >> u64(32))) * (b + (word & _HALF)) + c)",
        "((a + (word & _HALF)) * (b + (word >> u64(32))) + c)",
        (f"{HASHES}test_columns_are_pinned", GOLDEN),
    ),
    Bug(
        "a column depends on the low half of a word alone",
        "kernels/hashing.py",
        "((a + (word >> u64(32))) * (b + (word & _HALF)) + c)",
        "(a * (b + (word & _HALF)) + c)",
        (f"{HASHES}test_two_words_collide_as_rarely_as_promised",),
    ),
    # --- seeds, bytes, items ---
    Bug(
        "the seed is ignored",
        "seeds.py",
        "state = seed\n",
        "state = 0\n",
        ("tests/test_seeds.py::test_the_published_vectors", GOLDEN),
    ),
    Bug(
        "the mixing shifts a bit less",
        "seeds.py",
        "word ^ (word >> 27)",
        "word ^ (word >> 26)",
        ("tests/test_seeds.py::test_the_published_vectors",),
    ),
    Bug(
        "the header's length is written big end first",
        "wire.py",
        '"<2sBBI"',
        '">2sBBI"',
        ("tests/test_wire.py::test_a_frame_is_pinned", GOLDEN),
    ),
    Bug(
        "a header that is cut short is no WireError",
        "wire.py",
        "except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError)",
        "except (msgspec.ValidationError, RecursionError, UnicodeDecodeError)",
        (f"{FUZZ}test_flipped_bits",),
    ),
    Bug(
        "a header that is no UTF-8 is no WireError",
        "wire.py",
        "except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError)",
        "except (msgspec.MsgspecError, RecursionError)",
        (f"{FUZZ}test_flipped_bits",),
    ),
    Bug(
        "a window of no ticks is let in",
        "sketches/door.py",
        "Length = Annotated[int, msgspec.Meta(ge=1, le=ticks.LIMIT)]",
        "Length = Annotated[int, msgspec.Meta(ge=0, le=ticks.LIMIT)]",
        (f"{FUZZ}test_every_field_with_every_absurd_value",),
    ),
    Bug(
        "a clock beyond 2**61 is let in",
        "sketches/door.py",
        "Tick = Annotated[int, msgspec.Meta(ge=-ticks.LIMIT, le=ticks.LIMIT)]",
        "Tick = Annotated[int, msgspec.Meta(ge=-(1 << 63), le=(1 << 63) - 1)]",
        (f"{FUZZ}test_every_field_with_every_absurd_value",),
    ),
    Bug(
        "a sketch of too much memory is no WireError",
        "sketches/ecm.py",
        "except (ValueError, OverflowError) as error:",
        "except ValueError as error:",
        (f"{FUZZ}test_every_field_with_every_absurd_value",),
    ),
    Bug(
        "the rows need not hold all events",
        "sketches/ecm.py",
        "if total.drift.levels == 0 and np.any(rows != float(total.counts[0])):",
        "if False:",
        (REFUSED,),
    ),
    Bug(
        "entries older than the window are let in",
        "sketches/log.py",
        "if int(gaps.sum(dtype=object)) >= door.window:",
        "if False:",
        (REFUSED,),
    ),
    Bug(
        "entries of weight 0 are let in",
        "sketches/log.py",
        "if weights.min() == 0 or int",
        "if int",
        (REFUSED,),
    ),
    Bug(
        "a first arrival from outside the window is let in",
        "sketches/wavegrid.py",
        "elif begin < state.first <= clock:",
        "elif True:",
        (REFUSED,),
    ),
    Bug(
        "more levels than arrivals need are let in",
        "sketches/wavegrid.py",
        "if state.levels > 1 and most <= kept << (state.levels - 2):",
        "if False:",
        (REFUSED,),
    ),
    Bug(
        "text is hashed by Python",
        "items.py",
        "    return _hashed(data, ends)\n",
        "    return Named(np.array([hash(part) & _MASK for part in parts], np.uint64), 'text')\n",
        (f"{LAWS}test_another_process_writes_the_same_bytes",),
    ),
    # --- the door ---
    Bug(
        "a late event is one that is before the batch",
        "sketches/door.py",
        "clock = np.maximum(np.maximum.accumulate(arrived), start)",
        "clock = np.maximum(arrived, start)",
        (f"{LAWS}test_a_batch_means_what_its_events_mean_one_by_one", f"{DOOR}test_policies"),
    ),
    Bug(
        "the late events of a batch count as one",
        "sketches/door.py",
        "late = int(np.count_nonzero(behind))",
        "late = int(behind.any())",
        (f"{LAWS}test_a_batch_means_what_its_events_mean_one_by_one", f"{DOOR}test_policies"),
    ),
    Bug(
        "clamped events are not counted",
        "sketches/door.py",
        "late = int(np.count_nonzero(behind))",
        'late = int(np.count_nonzero(behind)) * (self.late == "drop")',
        (f"{DOOR}test_policies",),
    ),
    Bug(
        "the clock moves before a batch is known to be whole",
        "sketches/door.py",
        "behind = arrived < clock\n",
        "behind = arrived < clock\n            self.now = int(clock[-1])\n",
        (f"{DOOR}test_a_bad_batch_is_refused_whole", f"{DOOR}test_policies"),
    ),
    Bug(
        "negative weights are let in",
        "sketches/door.py",
        "if int(given.min()) < 0 or int(given.max()) >= COUNT_LIMIT:",
        "if int(given.max()) >= COUNT_LIMIT:",
        (f"{DOOR}test_a_bad_batch_is_refused_whole",),
    ),
    Bug(
        "the arrivals may come to 2**53",
        "sketches/door.py",
        "if total + admitted.arrivals >= COUNT_LIMIT:",
        "if total + admitted.arrivals > COUNT_LIMIT:",
        (f"{DOOR}test_arrivals_stay_below_2_53",),
    ),
    Bug(
        "no room is asked for",
        "sketches/ecm.py",
        "        require_room(self._arrivals, admitted)\n",
        "",
        (
            f"{DOOR}test_arrivals_stay_below_2_53",
            f"{SLIDING}test_more_arrivals_than_can_be_counted_are_refused",
        ),
    ),
    Bug(
        "an event just a range old is in the range",
        "sketches/door.py",
        "return moment - length, moment",
        "return moment - length - 1, moment",
        (
            f"{LAWS}test_everything_expires",
            ANY_STREAM,
            ALL_ITEMS,
            ALL_CUTS,
            UNION,
            f"{QUERIES}test_several_sketches_answer_as_one_stream_at_their_greatest_clock",
        ),
    ),
    Bug(
        "the newest tick is not in the range",
        "sketches/wavegrid.py",
        "*self._arrays(), cells, np.maximum(cutoffs - self._base, 0), expired, live",
        "*self._arrays(), cells, np.maximum(cutoffs + 1 - self._base, 0), expired, live",
        (f"{LAWS}test_everything_expires", SUFFIXES, EVERY_RANGE),
    ),
    Bug(
        "a duration is taken for ticks",
        "ticks.py",
        "not isinstance(value, bool | np.timedelta64)",
        "not isinstance(value, bool)",
        (f"{DOOR}test_a_duration_of_numpy_is_a_duration",),
    ),
    # --- the grid and the wave ---
    Bug(
        "one rank too many is kept",
        "sketches/wavegrid.py",
        "math.ceil((1 / epsilon + 1) / 2)",
        "math.ceil((1 / epsilon + 1) / 2) + 1",
        (f"{GRID}test_the_fewest_ranks_are_kept_whose_bound_is_epsilon", GOLDEN),
    ),
    Bug(
        "one rank too few is kept",
        "sketches/wavegrid.py",
        "math.ceil((1 / epsilon + 1) / 2)",
        "math.ceil((1 / epsilon - 1) / 2)",
        (
            f"{GRID}test_the_fewest_ranks_are_kept_whose_bound_is_epsilon",
            EVERY_RANGE,
            ANY_STREAM,
            f"{SLICE}test_a_slice[wave]",
        ),
    ),
    Bug(
        "the first arrival is in the range when it has just left",
        "sketches/wavegrid.py",
        "none_expired = cutoffs < self.first",
        "none_expired = cutoffs <= self.first",
        (
            f"{GRID}test_while_the_first_arrival_is_in_range_the_count_is_exact",
            EVERY_RANGE,
            ANY_STREAM,
            ALL_ITEMS,
        ),
    ),
    Bug(
        "the first arrival is forgotten",
        "sketches/wavegrid.py",
        "none_expired = cutoffs < self.first",
        "none_expired = cutoffs < self.first - self.window",
        (f"{GRID}test_while_the_first_arrival_is_in_range_the_count_is_exact",),
    ),
    Bug(
        "the first arrival is not written to the bytes",
        "sketches/wavegrid.py",
        "return GridState(self.levels, self.first if seen else None, drift)",
        "return GridState(self.levels, None, drift)",
        (f"{LAWS}test_from_its_bytes_a_sketch_lives_on_as_if_nothing_had_been",),
    ),
    Bug(
        "the lower end is one too low",
        "sketches/wavegrid.py",
        "np.where(none_expired, counts, counts - live + 1)",
        "np.where(none_expired, counts, counts - live)",
        (SUFFIXES, EVERY_RANGE, ANY_STREAM),
    ),
    Bug(
        "what remains is that of a tick before",
        "sketches/wave.py",
        "np.zeros(moments.size, np.int64), moments - self.window)",
        "np.zeros(moments.size, np.int64), moments - self.window - 1)",
        ("tests/sketches/test_wave.py::test_what_remains_is_what_later_questions_find",),
    ),
    # --- the ECM-sketch ---
    Bug(
        "the upper end is that of the guesses",
        "sketches/bounds.py",
        "np.minimum(cells.high.min(axis=-2), most)",
        "np.minimum(cells.value.min(axis=-2), most)",
        (ALL_ITEMS, ALL_CUTS),
    ),
    Bug(
        "the share of collisions is forgotten",
        "sketches/bounds.py",
        "share = sizes.share\n",
        "share = 0.0\n",
        (FOUND, WORST, SITES),
    ),
    Bug(
        "collisions are taken at their mean",
        "sketches/sizes.py",
        "collision * self.delta_hash ** (-1 / self.depth)",
        "collision",
        (
            WORST,
            WORST_JOIN,
            f"{SLICE}test_low_where_its_proof_is_nearly_tight[many equal items]",
        ),
    ),
    Bug(
        "a share of more than all is taken for a little less",
        "sketches/sizes.py",
        "float(collision * self.delta_hash ** (-1 / self.depth))",
        "float(min(collision * self.delta_hash ** (-1 / self.depth), 1 - 1e-9))",
        (f"{ECM}test_rows_in_which_all_may_collide_keep_their_promise",),
    ),
    Bug(
        "the rows are too narrow by a factor of e",
        "sketches/sizes.py",
        "width = math.ceil(math.e * (1 + epsilon) / epsilon)",
        "width = math.ceil((1 + epsilon) / epsilon)",
        (WORST,),
    ),
    Bug(
        "the collisions of a self-join are forgotten",
        "sketches/bounds.py",
        "low = _cleared(sizes, least, largest)",
        "low = least",
        (JOINED, WORST_JOIN, SITES),
    ),
    Bug(
        "a square is rounded to the nearest float",
        "sketches/bounds.py",
        "high = np.where(high < COUNT_LIMIT, high, high * (1 + 2**-28))",
        "",
        (f"{ECM}test_squares_beyond_float64_are_still_below_the_upper_end",),
    ),
    Bug(
        "a product takes the upper ends of one side only",
        "sketches/bounds.py",
        "(f.high, g.high))",
        "(f.high, g.value))",
        (f"{ECM}test_an_inner_product_is_found_within_its_interval",),
    ),
    Bug(
        "the clock of several sketches is that of the first",
        "sketches/ecm.py",
        "max(sketches, key=lambda sketch: -math.inf if sketch.now is None else sketch.now)",
        "sketches[0]",
        (
            UNION,
            f"{QUERIES}test_several_sketches_answer_as_one_stream_at_their_greatest_clock",
        ),
    ),
    Bug(
        "the cells of several sketches are those of the first",
        "sketches/ecm.py",
        "cells = Spans.sum(sketch.spans(at, cutoff) for sketch in sketches)",
        "cells = sketches[0].spans(at, cutoff)",
        (
            UNION,
            f"{QUERIES}test_several_sketches_answer_as_one_stream_at_their_greatest_clock",
        ),
    ),
    Bug(
        "the total of several sketches is that of the first",
        "sketches/ecm.py",
        "return Spans.sum(sketch.total_span(cutoff) for sketch in sketches)",
        "return sketches[0].total_span(cutoff)",
        (
            UNION,
            f"{QUERIES}test_several_sketches_answer_as_one_stream_at_their_greatest_clock",
        ),
    ),
    Bug(
        "the count of a log holds its expired entries",
        "sketches/ecm.py",
        "total.insert_run(held.events(self.now - self.window)[1])",
        "total.insert_run(held.events(-(1 << 62))[1])",
        ("tests/sketches/test_ecm.py::test_the_count_of_all_events_forgets_what_has_expired",),
    ),
    Bug(
        "the log counts the entries that expired",
        "sketches/log.py",
        "over = np.arange(1, self.ticks.size + 1) - oldest > self.limit",
        "over = np.arange(1, self.ticks.size + 1) > self.limit",
        (f"{LOG}test_it_takes_events_up_to_the_first_that_is_one_too_many",),
    ),
    Bug(
        "the log answers for what has expired",
        "sketches/log.py",
        'begin = int(np.searchsorted(self.ticks, cutoff, "right"))',
        "begin = 0",
        (f"{LOG}test_the_cells_of_a_log_are_exact", f"{LAWS}test_everything_expires"),
    ),
    Bug(
        "the rows hash alike",
        "sketches/ecm.py",
        "seeds.expand(sizes.origin.seed, 3 * sizes.depth).reshape(sizes.depth, 3)",
        "np.tile(seeds.expand(sizes.origin.seed, 3), (sizes.depth, 1))",
        (f"{SLICE}test_low_where_its_proof_is_nearly_tight[one heavy item]",),
    ),
    # --- the questions, the buffer ---
    Bug(
        "items are written without quotes",
        "queries.py",
        "{k}={v!r}",
        "{k}={v}",
        (f"{QUERIES}test_a_question_is_read_back_from_its_text",),
    ),
    Bug(
        "hidden arrivals are added to the nearest float",
        "queries.py",
        "return math.nextafter(most, math.inf) if hidden and most >= COUNT_LIMIT else most",
        "return most",
        (f"{QUERIES}test_hidden_arrivals_never_lower_an_upper_end",),
    ),
    Bug(
        "a full buffer is cleared before it is passed on",
        "sketches/buffer.py",
        "            self.flush()\n\n    def flush",
        "            self.clear()\n\n    def flush",
        (
            "tests/sketches/test_buffer.py::test_a_buffered_stream_leaves_the_sketch_that_a_batch_leaves",
        ),
    ),
    # --- sliding, the periodic protocol ---
    Bug(
        "the first block of steps answers for all",
        "sliding.py",
        "for parts in zip(*answers, strict=True)",
        "for parts in zip(*answers[:1] * len(answers), strict=True)",
        (f"{SLIDING}test_a_step_answers_as_the_question_does",),
    ),
    Bug(
        "a range is taken for the window",
        "sliding.py",
        "self._length = now - cutoff",
        "self._length = sketch.window",
        (
            f"{SLIDING}test_a_step_answers_as_the_question_does",
            f"{SLIDING}test_certain_bounds_hold_at_every_step",
        ),
    ),
    Bug(
        "the last step before a silence is lost",
        "sliding.py",
        "end + window, step)",
        "end + window - step, step)",
        (f"{SLIDING}test_steps_are_those_whose_window_holds_an_event",),
    ),
    Bug(
        "a step is given once the last event has left",
        "sliding.py",
        'return moments[newest > np.searchsorted(arrived, moments - window, "right")]',
        "return moments",
        (f"{SLIDING}test_steps_are_those_whose_window_holds_an_event",),
    ),
    Bug(
        "the expirations are left out of the rule",
        "protocols/periodic.py",
        "return [d * (2 * a + expired) > 2 * n",
        "return [d * (2 * a) > 2 * n",
        (f"{PERIODIC}test_silence_is_reported",),
    ),
    Bug(
        "the rule is asked at a batch's end alone",
        "protocols/periodic.py",
        "        consumed = ticks.size\n",
        "        consumed = ticks.size\n        speaks[:-1] = False\n",
        (
            f"{PERIODIC}test_batches_do_not_matter",
            f"{PERIODIC}test_batches_do_not_matter_when_events_are_late",
        ),
    ),
    Bug(
        "too few events are looked at",
        "protocols/periodic.py",
        "begin = int(tried[first - 1]) + 1 if first else begin",
        "begin = int(tried[first - 1]) + 2 if first else begin",
        (f"{PERIODIC}test_batches_do_not_matter",),
    ),
    Bug(
        "late events are not among those taken",
        "protocols/periodic.py",
        "event = int(np.flatnonzero(admitted.kept)[event])",
        "pass",
        (f"{PERIODIC}test_batches_do_not_matter_when_events_are_late",),
    ),
    Bug(
        "what a silent site hides is forgotten",
        "protocols/periodic.py",
        "hidden = sum(hidden_arrivals(sketch.total_wave(), self._epsilon) for sketch in held)",
        "hidden = 0",
        (
            f"{PERIODIC}test_certain_bounds_hold_after_every_event",
            f"{SLICE}test_a_slice[periodic]",
        ),
    ),
    Bug(
        "a report counts one event more than it holds",
        "protocols/periodic.py",
        "self._remember(self.sketch.total_wave(), self.sketch.arrivals, self",
        "self._remember(self.sketch.total_wave(), self.sketch.arrivals + 1, self",
        (f"{PERIODIC}test_nothing_is_hidden_beyond_the_allowance",),
    ),
    Bug(
        "a snapshot forgets the number of reports",
        "protocols/periodic.py",
        "site._number = state.number",
        "site._number = 0",
        (f"{PERIODIC}test_a_snapshot_changes_nothing",),
    ),
    Bug(
        "a report older than the last is taken",
        "protocols/periodic.py",
        "if message.number <= known:",
        "if message.number == known:",
        (f"{PERIODIC}test_a_repeated_report_changes_nothing",),
    ),
    Bug(
        "a text is cut into its letters",
        "protocols/periodic.py",
        "words, kind = self.sketch.words(items)",
        "words, kind = self.sketch.words(list(items))",
        (f"{PERIODIC}test_a_site_refuses_a_batch_whole",),
    ),
    Bug(
        "reports are read without asking what they are about",
        "protocols/periodic.py",
        "if sketch.specification != self._template.specification:",
        "if False:",
        (
            f"{PERIODIC}test_bytes_that_hold_what_no_machine_says_are_refused",
            f"{PERIODIC}test_sites_of_another_specification_are_refused",
        ),
    ),
    # --- merging ---
    Bug(
        "what was merged does not know that it drifted",
        "sketches/merging.py",
        "return cls(max(levels), min(lows), max(highs))",
        "return cls(max(levels), 1.0, 1.0)",
        (MERGED_WAVES, MERGED_RANGES, JOINED_WAVES, MERGED_SKETCHES, JOINED_SKETCHES),
    ),
    Bug(
        "a level of merging forgets the drift of those below",
        "sketches/merging.py",
        "return Drift(self.levels + 1, _down(self.low, low), _up(self.high, high))",
        "return Drift(self.levels + 1, low, high)",
        (MERGED_RANGES,),
    ),
    Bug(
        "the halves of a segment are placed the other way round",
        "kernels/merging.py",
        "weights[at] = sizes[i] - older + moved",
        "weights[at] = older + moved",
        (MERGED_WAVES, MERGED_RANGES),
    ),
    Bug(
        "events of small sketches are merged into other cells",
        "sketches/ecm.py",
        "merging.Exact(cells, events), merging",
        "merging.Exact((cells + 1) % cells.max(initial=2), events), merging",
        (MERGED_SKETCHES,),
    ),
    Bug(
        "parts of a merge are not compared",
        "sketches/merging.py",
        "        if first != other:\n",
        "        if False:\n",
        (f"{MERGING}test_sketches_that_differ_are_refused_by_name",),
    ),
    Bug(
        "a stamp is given instead of the tick at which it leaves",
        "sketches/counting.py",
        "return None if change is None else change + now - cutoff",
        "return change",
        (f"{MERGING}test_next_change_is_when_an_answer_may_change_by_itself",),
    ),
    # --- windows of arrivals ---
    Bug(
        "all arrivals of an event share its tick",
        "kernels/wave.py",
        "came = stamp - step * (after - _rank_at(place, level, levels))",
        "came = stamp",
        (ARRIVALS_CUT,),
    ),
    Bug(
        "ranks that an event pushes out are held against its last arrival",
        "kernels/wave.py",
        "if left > stamp - step * (after - newest) - window:",
        "if left > stamp - window:",
        (ARRIVALS_CUT,),
    ),
    Bug(
        "the log answers for the expired part of its oldest entry",
        "sketches/log.py",
        "weights = np.minimum(weights, self.ticks[begin:] - cutoff)",
        "pass",
        (ARRIVALS_CUT,),
    ),
    # --- other counters ---
    Bug(
        "a counter's share of delta allows for one copy",
        "sketches/sizes.py",
        "delta_window = delta / (2 * read) if randomized else 0.0",
        "delta_window = 0.99 if randomized else 0.0",
        (COUNTERS,),
    ),
    Bug(
        "of merged samples only the first part's are kept",
        "sketches/randomizedgrid.py",
        "held = held.joined(grid._content(now), own.capacity + 1)",
        "held = held",
        (COUNTERS,),
    ),
    Bug(
        "of the lowest buckets as few are kept as of the others",
        "kernels/exphist.py",
        "return k + 1 if level == 0 else ((k + 1) >> 1) + 1",
        "return ((k + 1) >> 1) + 1",
        (f"{OVER}test_upper_ends_over_exponential_histograms_are_certain",),
    ),
    # --- events out of order ---
    Bug(
        "events that are less than the lateness old go on",
        "sketches/reorder.py",
        'moments[order[-1]] - self._lateness, "right"',
        'moments[order[-1]] - self._lateness + 1, "right"',
        (f"{REORDER}test_a_stream_out_of_order_leaves_the_sketch_that_it_leaves_in_order",),
    ),
    # --- what is refused ---
    Bug(
        "a log takes an event that its counters refuse",
        "sketches/ecm.py",
        "        grids.require_light(self._sizes, admitted)\n",
        "",
        (f"{ATOMIC}test_a_refused_batch_leaves_nothing",),
    ),
    Bug(
        "the arrivals of a batch are counted before it is in",
        "sketches/ecm.py",
        "        require_room(self._arrivals, admitted)\n",
        "        self._arrivals += admitted.arrivals\n"
        "        require_room(self._arrivals - admitted.arrivals, admitted)\n"
        "        self._arrivals -= admitted.arrivals\n",
        (f"{ATOMIC}test_a_refused_batch_leaves_nothing",),
    ),
    Bug(
        "merged arrivals are not held to what can be counted",
        "sketches/merging.py",
        "    if arrivals >= COUNT_LIMIT:",
        "    if False:",
        (f"{ATOMIC}test_more_arrivals_than_can_be_counted_are_not_merged",),
    ),
)
