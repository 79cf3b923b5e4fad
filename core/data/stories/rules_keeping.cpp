#include "core/data/stories/rules.h"

namespace forge::data::stories {

const std::vector<RuleText>& keeping_plots() {
  static const std::vector<RuleText> rules = {
      // Something is put away, looked for and found where the story said.
      {"plot_lost",
       {"{meet_A} {lost_owner}\n\n{when}, {lost_put} [{meet_B}|{habit}|] On the way {A.he} saw "
        "{seen}. [{scene} |]{A} and {B} {play1.ed} until {until}.\n\n{lost_search}\n\n{lost_found} "
        "{lost_end}"}},
      {"lost_owner",
       {"{A.he} had {look1.a} {x} that {C} had given {A.him} {occasion1}. \"{A} [always|often] "
        "{care.s} that {x},\" said {A.his} {family}.",
        "{occasion1} {C}, {job1.a}, had made {A.him} {look1.a} {x}. It was the {look.est} thing "
        "that {A.he} owned, and {A.he} {care.ed} it {touch} every {daytime}.",
        "Of all {A.his} things {A.he} loved one best: {look1.a} {x}, which {C} had brought from "
        "{village} {occasion1}."}},
      {"lost_put",
       {"{A} put the {x} {hidden_at} and {move.ed} {went_to} to {play1} with {B}.",
        "{A} laid the {x} {hidden_at}, [so that it would be safe|because it was too "
        "[heavy|precious|large|fragile] to carry], and went {went_to}.",
        "{A} hid the {x} {hidden_at}, for {A.he} wanted to {play1} with {B}. Then {A.he} "
        "{move.ed} {went_to}."}},
      {"lost_search",
       {"When {A} came home, {A.he} could not remember where the {x} was. {A.he} looked behind the "
        "{furniture} and under the {furniture}, but there was only {thing.a} and {number} "
        "{found.s}. \"Have you seen my {x}?\" {A.he} asked {C}. \"The {look1} one?\" asked {C}. "
        "\"Think [carefully|calmly|quietly]. Where were you before you went {went_to}?\"",
        "In the {daytime} {A} wanted to show {B} the {x}. It was not in the {container}. It was "
        "not in the {container} either. \"What are you looking for?\" asked {C}. \"The {x} that "
        "you gave me {occasion1},\" {said_A}, and {A.he} was {upset}. \"Did you have it when you "
        "{play1.ed}?\" asked {B}.",
        "The next {daytime} the {x} was gone. {A} searched the {room}, the {room} and even the "
        "{container} of {A.his} {family}. {upset_A} \"{x.a} does not walk away,\" {said_C}. \"What "
        "did you do before you {play1.ed}?\""}},
      {"lost_found",
       {"{A} {worry.ed} and thought. Then {A.he} {move.ed} back and looked {hidden_at}. There was "
        "the {x}!",
        "\"Now I know!\" [cried|called] {A}. {moved_A} to the place and found the {x} {hidden_at}, "
        "just where {A.he} had put it.",
        "{B} had the idea. \"You told me,\" {said_B}, \"that it was {hidden_at}.\" And there it "
        "was: the {look1} {x} from {C}."}},
      {"lost_end",
       {"\"Where was it?\" asked {B} [later|on {day}]. \"{hidden_at},\" {said_A}. {moral}",
        "{tell_seen} {moral}",
        "{evening} {moral}",
        "\"Who gave you the {x}?\" asked {D}. \"{C} did, {occasion1},\" {said_A}. {tell_seen}",
        "\"The last place where you look,\" {said_C}, \"is the first that you forgot.\" "
        "{tell_seen} {glad_A}"}},

      // A tool is lent until a day, and the promise is kept or not.
      {"plot_promise",
       {"{meet_A} {A.he} {intend.ed} to make {thing.a} for {C}, but {A.he} had no {tool1}. {B} had "
        "one with {colour1.a} handle. \"May I borrow your {tool1}?\" asked {A}. "
        "{promise_given}\n\n{promise_work} {scene}\n\n{promise_kept}",
        "{meet_A} {meet_B} {when}, {A} broke {A.his} {tool1}. {promise_given} It was {look.a} "
        "{tool1} with {colour1.a} handle, and {B} had bought it {occasion1}.\n\n{promise_work} "
        "[{habit}|{scene}]\n\n{promise_broken}"}},
      {"promise_given",
       {"\"You may have mine until {day1},\" {said_B}, \"because on {day1} I want to {task1}.\" "
        "\"I promise,\" {said_A}.",
        "\"Take mine,\" {said_B}, \"but bring it back on {day1}. I have to {task1} then.\" {A} "
        "promised.",
        "{B} lent {A.him} one, and {A} promised to bring it back on {day1}, when {B} had to "
        "{task1}."}},
      {"promise_work",
       {"For {n1} days {A} worked in the {room1}. In the {daytime} {A.he} put the {tool1} "
        "{hidden_at}.",
        "{A} worked until {until}. When {A.he} was done, {A.he} left the {tool1} {hidden_at}.",
        "The work was [slow|hard|quick], and {A} often {gesture.ed} while {A.he} worked. Each "
        "night the {tool1} lay {hidden_at}."}},
      {"promise_kept",
       {"When {day1} came, {weather_change}. {A} thought of {B}, who had to {task1}. {A.he} took "
        "the {tool1} from its place {hidden_at} and {move.ed} over the {crossing}. \"Here is your "
        "{tool1},\" {said_A}. \"You said {day1}, and it is {day1},\" {said_B}. \"You are "
        "{trait}.\" {moral}",
        "On {day1} {D} asked {A} to {play}. \"I cannot,\" {said_A}. \"I promised {B} something.\" "
        "{A.he} found the {tool1} {hidden_at}, {wiped} the {colour1} handle and brought it back. "
        "{B} {gesture.ed}. \"Now I can {task1},\" {B.he} said. {evening} \"What you lend with "
        "joy,\" {said_C}, \"comes back with joy.\""}},
      {"promise_broken",
       {"{day1} came, and {A} forgot. {A.he} {play.ed} with {D} until {until}. The next day {B} "
        "stood at the door. \"Where is my {tool1}?\" {B.he} asked. \"I could not {task1} "
        "yesterday.\" {upset_A} \"It is {hidden_at},\" {said_A}, \"and I am sorry. I will help you "
        "to {task1}.\" And {A.he} {task1.ed} with {B} until {until}. {moral}",
        "On {day1} {A} was {task.ing} and remembered nothing. \"Did you not promise {B} the "
        "{tool1} with the {colour1} handle?\" asked {C}. {A} ran. It was still {hidden_at}. When "
        "{A.he} came to {B}, {B} had {task1.en} without it. \"I will never be late again,\" "
        "{said_A}. {moral}"}},

      // A present that remembers what somebody likes.
      {"plot_gift",
       {"{meet_A} {meet_B} {gift_wish}\n\n{gift_shop}\n\n[{scene}\n\n|]{gift_given} {moral}"}},
      {"gift_wish",
       {"{B.his} birthday was on {day1}. {A} knew that {B} liked {colour1} better than any other "
        "colour, and {fruit1.s} better than any other fruit. {B.he} had said so when they "
        "{play1.ed} {went_to}.",
        "While they were {play1.ing}, {B} {say.ed} that {B.he} wanted {thing.a}, but it had to be "
        "{colour1}. \"And I could eat {fruit1.s} all day,\" {B.he} added. {A} remembered it, for "
        "on {day1} {B} would be {age1} years old."}},
      {"gift_shop",
       {"{A} had {n1} coins. [In the shop by the|Next to the] {building1} {C} sold {thing.s}, "
        "{thing.s} and {clothing.s}. \"I have {colour.a} {x} and {colour1.a} {x},\" {said_C}. "
        "\"Which will it be?\" \"The {colour1} one,\" {said_A}. It cost all of {A.his} {n1} coins. "
        "At home {A.he} hid it {hidden_at}.",
        "So {A} asked {C}, the {job1}, for help. Together they made {colour1.a} {x} with {number} "
        "{trimming.s} on it. {C} {mend_act.ed} the last {trimming} {touch}. \"Keep it {hidden_at} "
        "until {day1},\" {said_C}, \"so that {B} will not see it.\" {A} did."}},
      {"gift_given",
       {"On {day1} {A} fetched the present, which was still {hidden_at}. {B} unpacked it {touch}. "
        "\"{colour1.a} {x}!\" {B.he} cried. \"How did you know?\" \"You told me, when we "
        "{play1.ed} {went_to},\" {said_A}. And there was {dish.a} with {fruit1.s}, too.",
        "When {day1} came, {B} {move.ed} to the door of {A}. \"Is there something for me?\" \"Look "
        "{hidden_at},\" {said_A}. There {B} found the {x}. It was {colour1}. {B} {gesture.ed}. "
        "Afterwards they ate {fruit1.s} and drank {drink}. \"Who made it?\" asked {D}. {A} only "
        "{gesture.ed}, and so did {C}."}},

      // Two things and their owners.
      {"plot_owners",
       {"{meet_A} {meet_B} {when}, {A} found {look1.a} {x} near the {crossing1} and {y.a} beside "
        "the {building1}. {owners_ask}\n\n{scene}\n\n{owners_end}"}},
      {"owners_ask",
       {"{A.he} asked everyone. The {x} belonged to {C}, who had lost it {occasion1}. The {y} "
        "belonged to {D}, but {D} was in {village} until {day1}. So {A} put the {y} {hidden_at}.",
        "\"The {x} is mine,\" {said_C}, \"I lost it {occasion1}. But the {y} belongs to {D}. "
        "{D.he} comes back on {day1}.\" {A} kept the {y} {hidden_at} and waited."}},
      {"owners_end",
       {"On {day1} {D} came home. \"Somebody has taken my {y},\" {D.he} said. \"Nobody has taken "
        "it,\" {said_A}. \"It lies {hidden_at}.\" {D} {gesture.ed}. \"And whose was the {look1} "
        "{x}?\" \"It was {C}'s,\" {said_A}. \"I found it near the {crossing1}.\" {moral}",
        "\"Where did you find my {y}?\" asked {D} on {day1}. \"Beside the {building1},\" {said_A}, "
        "\"and the {x} of {C} near the {crossing1}.\" {D} {care.ed} the {y}. \"You could have kept "
        "it,\" {D.he} said. \"But it is yours,\" {said_A}. {moral}"}},
  };
  return rules;
}

}  // namespace forge::data::stories
