#include "core/data/stories/story_grammar.h"

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

const std::vector<RuleText>& learning_plots() {
  static const std::vector<RuleText> rules = {
      // A skill learned from somebody, shown later.
      {"plot_skill",
       {"{meet_A} More than anything {A.he} wanted to {skill1}, but {A.he} did not know how. "
        "{skill_teacher}\n\n{skill_practice} [{scene}|{habit}]\n\n{skill_shown} {moral}"}},
      {"skill_teacher",
       {"In {village} lived {C}, {job1.a}, who could {skill1} better than anyone. {when}, {A} took "
        "the {vehicle1} and went there with {dish1.a} as a present.",
        "\"Ask {C},\" said {B}. \"{C.he} is {job1.a}, and {C.he} taught my {family} to {skill1}.\" "
        "So {A} {move.ed} {went_to} and gave {C.him} {dish1.a}.",
        "{A.his} {family} said that {C}, the {job1} at the {building1}, knew how to {skill1}. {A} "
        "brought {C.him} {dish1.a} and asked {tone}."}},
      {"skill_practice",
       {"\"It is not hard,\" {said_C}, \"but you must try {n1} times.\" {A} tried and {worry.ed}. "
        "After {n2} days {A.his} {limb.s} hurt, and still it went wrong. \"{lesson1},\" {said_C}.",
        "{C} showed {A.him} everything {touch}. {A} tried once, twice, {n1} times. {upset_A} "
        "\"Wait until {day1},\" {said_C}. And on {day1} {A} could {skill1}.",
        "First {A.he} had to {task1}, then to {task2}. \"What has this to do with it?\" {A.he} "
        "asked. \"Who {task1.s} well learns well,\" {said_C}. After {n1} weeks {A} understood."}},
      {"skill_shown",
       {"At the {festival1} {B} asked, \"Can anyone here {skill1}?\" {A} stood up and did it. "
        "Everybody {gesture.ed}. \"Who taught you that?\" asked {B}. \"{C}, the {job1},\" "
        "{said_A}, \"and all it cost was {dish1.a}.\"",
        "Back in {village1} {A} showed {B} how to {skill1}. \"How often did you try?\" asked {B}. "
        "{A} {gesture.ed} and thought of the {job1}, who had waited so long. \"Often enough,\" "
        "{A.he} said, \"and I will teach you too, if you bring me {dish1.a}.\"",
        "Many years later {A} was {job1.a} too. When {trait.a} child came with {dish1.a} and "
        "wanted to {skill1}, {A} remembered {C} and {gesture.ed}."}},

      // What was noticed outside answers a question at school.
      {"plot_school", {"{meet_A} {school_way}\n\n{school_lesson}\n\n{school_answer}"}},
      {"school_way",
       {"{when}, on the way to school, {A.he} saw {hoarder1.a}. It had {n1} {hoard1.s} and carried "
        "them, one by one, under {tree.a}. A little later {A.he} saw {seen}. {A} looked for so "
        "long that {A.he} came late.",
        "{A} did not like {subject1}. {A.he} liked to {move} through the {landscape} and look at "
        "things. {when}, {A.he} counted {n1} {hoard1.s} that {hoarder1.a} had hidden. [Then "
        "{weather_change}.|{scene}]",
        "{A.he} {often} stopped at the {landscape} before school. There {hoarder1.a} lived among "
        "the {tree.s}, and {A} knew that it had hidden {n1} {hoard1.s} for the winter."}},
      {"school_lesson",
       {"{C}, the teacher, was {upset}. \"{A}, where have you been?\" {C.he} asked. \"We have "
        "{subject1} today, and {B} has already answered {n2} questions.\" {B} was {trait.a} pupil "
        "and {gesture.ed}.",
        "That day {C} taught {subject1}. {C.he} wrote {number} words on the board, and {B} read "
        "them {tone}. {A} looked out of the window, where {weather_change}.",
        "\"Today we talk about animals,\" {said_C}, \"and not about {subject1}.\" {B} "
        "{gesture.ed}, for {B.he} had learned the {subject1} by heart. {scene}"}},
      {"school_answer",
       {"\"Now,\" {said_C}, \"who knows what {hoarder1.a} does before winter?\" Nobody answered, "
        "not even {B}. {A} stood up. \"It hides {hoard1.s},\" {A.he} said. \"I counted them. There "
        "were {n1}.\" {C} {gesture.ed}. \"That is better than {subject1},\" {C.he} said. {moral}",
        "Then came a question that was in no book. \"How many {hoard1.s} can {hoarder1.a} carry "
        "away?\" \"{n1},\" {said_A} at once. \"How do you know?\" asked {B}. \"I watched it,\" "
        "{said_A}. {B} was {glad}, and {C} gave {A.him} {thing.a}. {moral}"}},

      // A message, word for word, over several people.
      {"plot_message",
       {"{meet_A} {when}, {C} called {A.him}. \"Go to {E} at the {building1},\" {C.he} said, \"and "
        "say that {message1}. Do not forget it.\"\n\n{message_way}\n\n{message_told}"}},
      {"message_way",
       {"{A} {move.ed} past the {building2} and over the {crossing1}. {scene} All the way {A.he} "
        "said it to {A.himself}: {message1}.",
        "On the way {A.he} met {B}, who wanted to {play1}. \"Later,\" {said_A}, \"I have a "
        "message.\" Behind the {crossing1} {A.he} saw {seen}. [{scene} |]But {A.he} did not stop.",
        "{A} was {weary}, for it was far. At the {crossing1} {A.he} met {B} and they {play1.ed} "
        "until {until}. Then {A.he} remembered the message. {A.he} {move.ed} on {pace}, past the "
        "{building2}."}},
      {"message_told",
       {"{E} was {task.ing} at the {building1}. \"What brings you here?\" {E.he} asked. \"{C} "
        "sends me,\" {said_A}. \"I am to say that {message1}.\" {E} {gesture.ed}. \"Then tell "
        "{C},\" {E.he} said, \"that I will come on {day1}.\" {A} went all the way back. \"What did "
        "{E} say?\" asked {C}. \"{E.he} will come on {day1},\" {said_A}. {tell_seen}",
        "At the {building1} {A} found {D} instead. \"{E} is not here,\" {said_D}. \"Tell me, and I "
        "will tell {E.him}.\" So {A} told {D} that {message1}. In the evening {E} came to {C}. "
        "\"{D} says that {message1}. Is it true?\" \"It is,\" {said_C}, \"and {A} carried it "
        "without losing a word.\" {moral}"}},

      // A way there and, in the opposite order, back again.
      {"plot_way", {"{meet_A} {way_why}\n\n{way_there}\n\n{way_back}"}},
      {"way_why",
       {"{A.his} {family} was ill, and only {C}, {job1.a}, had the right {drink}. \"Go past the "
        "{building1},\" they told {A.him}, \"then over the {crossing1}, and turn at the {tree1}.\"",
        "{when}, {A} had to bring {x.a} to {C}. \"Where does {C.he} live?\" asked {A}. \"Walk to "
        "the {building1}, cross the {crossing1} and look for the {tree1},\" {said_B}.",
        "{A} had never been at {C}'s house. \"It is easy,\" said {B}. \"First comes the "
        "{building1}, then the {crossing1}, and last the {tree1}. There it is.\""}},
      {"way_there",
       {"At the {building1} {A} saw {seen}. At the {crossing1} {A.he} [rested|ate {fruit.a}|lost "
        "{A.his} {clothing}]. [{scene} |]And behind the {tree1} stood the house. {C} was "
        "{task1.ing}. \"Did you find the way?\" {C.he} asked. \"First the {building1}, then the "
        "{crossing1}, then the {tree1},\" {said_A}.",
        "{moved_A}. There was the {building1}, and there was the {crossing1}, where {number} "
        "{bird.s} {bird_act.ed}. [{scene} |]When {A.he} came to the {tree1}, {C} was already "
        "waiting, for {C.he} had {task1.en} since {hour1}."}},
      {"way_back",
       {"But when {A} wanted to go home, {weather_change}, and everything looked strange. \"Go the "
        "same way, only turned around,\" {said_C}. So the {tree1} came first, then the "
        "{crossing1}, and last of all the {building1}. \"What was {C} doing?\" they asked at home. "
        "\"{C.he} was {task1.ing},\" {said_A}. {tell_seen}",
        "It grew dark. {A} was {upset}, but {A.he} thought: \"If the {tree1} was last, it is now "
        "first.\" After the {tree1} {A.he} found the {crossing1}, and after the {crossing1} the "
        "{building1}. At the door stood {B}. \"How did you find the way?\" asked {B}. \"I went it "
        "backwards,\" {said_A}. {moral}"}},
  };
  return rules;
}

const std::vector<RuleText>& doing_plots() {
  static const std::vector<RuleText> rules = {
      // Shopping by a list, and the account of it.
      {"plot_market", {"{meet_A} {market_list}\n\n{market_there}\n\n{market_home}"}},
      {"market_list",
       {"{when}, {C} gave {A.him} {material1.a} {carrier1} and a list: {n1} {fruit1.s}, {n2} "
        "{vegetable1.s} and {x.a}. \"Bring them before {hour1},\" {said_C}, \"because the "
        "{festival1} is on {day1}.\"",
        "\"We need {n1} {fruit1.s} and {n2} {vegetable1.s},\" {said_C}, \"and {x.a} for the "
        "{festival1}. Can you be back at {hour1}?\" \"Yes,\" {said_A}, and took the {material1} "
        "{carrier1}."}},
      {"market_there",
       {"At the market {A} met {B}, who was {trade.ing} {clothing.s}. {A} "
        "[bought|chose|ordered|paid for] the {fruit1.s} first. They were {taste}, and the "
        "{taste.est} one lay on top. Then {A.he} [bought|chose|picked out] the {vegetable1.s}. "
        "{scene} On the way home {A.he} saw {seen}.",
        "{scene_town} The {occupation} had {taste} {fruit1.s}, and {A} counted them twice: {n1}. "
        "The {vegetable1.s} cost {n3} coins. Then {B} came and wanted to {play1}, and they "
        "{play1.ed} until {until}."}},
      {"market_home",
       {"At home {C} looked into the {carrier1}. \"{n1} {fruit1.s}, {n2} {vegetable1.s}. But where "
        "is the {x}?\" {upset_A} \"I forgot it,\" said {A}, and {A.he} {move.ed} back. At {hour1} "
        "the {x} stood on the table. {tell_seen} {moral}",
        "\"How many {vegetable1.s} did you bring?\" asked {C}. \"{n2},\" {said_A}, \"and {n1} "
        "{fruit1.s}.\" \"And the {x} for the {festival1}?\" \"It is in the {carrier1},\" {said_A}. "
        "It was not yet {hour1}. {evening} {moral}",
        "{C} unpacked everything. There was the {x}, there were {n2} {vegetable1.s}, but there "
        "were not {n1} {fruit1.s}. \"Where is the last one?\" asked {C}. {A} {worry.ed}. \"It was "
        "too {taste},\" {A.he} said. {C} laughed. {moral}"}},

      // Something is built with what others lend, and all goes back.
      {"plot_build",
       {"{meet_A} {A.he} {intend.ed} to build {buildable1.a} for the {festival1}. It needed {n1} "
        "{part1.s} and {n2} {part2.s}. {build_lent}\n\n{build_work}\n\n{build_end}"}},
      {"build_lent",
       {"{B} lent {A.him} {tool1.a}, and {C}, the {job1}, lent {A.him} {tool2.a}. The {part1.s} "
        "came from the {building1}.",
        "{A} had no tools. From {B} {A.he} got {tool1.a}. From {C} {A.he} got {tool2.a}, but only "
        "until {day1}, for {C} was {job1.a} and needed it."}},
      {"build_work",
       {"In the {room1} {A} {mend_act.ed} the {part1.s} to the boards and {mend_act.ed} the "
        "{part2.s} under them. {B} held the lamp, and {D} was {mend_act.ing} {part.a} at the back. "
        "[{scene}|{glad_A}]",
        "First {A.he} {mend_act.ed} {part.a}, then {A.he} {mend_act.ed} the {part1.s}. \"Whoever "
        "{mend_act.s} {part.s} so {touch} is {job1.a},\" {said_C}. But one of the {n2} {part2.s} "
        "broke, and {A} had to {mend_act} a new one. {scene}",
        "For {n3} days there was noise in the {room1}. {A} had {mend_act.en} all {n1} {part1.s} "
        "when {weather_change}. {A.he} painted everything {colour1}. {glad_A}"}},
      {"build_end",
       {"When the {buildable1} was ready, {A} cleaned the tools. \"Whose {tool1} is this?\" asked "
        "{D}. \"It is {B}'s,\" {said_A}, \"and the {tool2} goes back to {C}.\" Only then did they "
        "ride to the {festival1}. {moral}",
        "On {day1} {A} brought the {tool2} to {C} and the {tool1} to {B}. Then the {buildable1} "
        "came out of the {room1}. It had {n1} {part1.s}, and it did not break. At the {festival1} "
        "everybody {gesture.ed}. {moral}"}},

      // An animal is found, named and claimed.
      {"plot_animal",
       {"{meet_A} {when}, {weather_change}. {animal_found}\n\n{animal_kept}\n\n{animal_end}"}},
      {"animal_found",
       {"{A} heard a sound behind the {building1}. There sat {colour1.a} {pet1}, wet and {weary}, "
        "with {colour.a} ribbon around its neck. {A.he} took it home and called it {pet1_name}.",
        "Under {tree.a} near the {landscape} {A} found {colour1.a} {pet1}. Its "
        "[leg|ear|paw|foot|back] was hurt. {A} tied a [scarf|ribbon|handkerchief|shawl|sock] "
        "around it. \"I will call you {pet1_name},\" {A.he} said.",
        "At the {landscape} {colour1.a} {pet1} was {creature_act.ing} all alone. It "
        "{creature_move.ed} after {A} to the door and would not leave. {A} named it {pet1_name} "
        "and {gesture.ed}."}},
      {"animal_kept",
       {"{pet1_name} slept {den} and {creature_act.ed} every {daytime}. {A} gave it "
        "[milk|water|broth] and {dish.a}. {scene} After {n1} days {pet1_name} was {trait} and "
        "{trait}.",
        "{pet1_name} liked {vegetable1.s}, but not {fruit.s}. At night it lay {den}. When {A} "
        "{task.ed}, {pet1_name} {creature_act.ed} beside {A.him}. [{scene}|{habit}]"}},
      {"animal_end",
       {"On {day1} {C} knocked at the door. \"I have lost {colour1.a} {pet1},\" {C.he} said. {A} "
        "grew {upset}. {pet1_name} lay {den} and looked up. The {pet1} {creature_move.ed} "
        "to {C} at once. \"You may visit it every {day2},\" {said_C}. And every {day2} {A} went to "
        "see {pet1_name}. {moral}",
        "\"Does the {pet1} belong to someone?\" asked {B}. They asked in the {building.s} and at "
        "the {building2}, but nobody had lost {colour1.a} {pet1}. So {pet1_name} stayed. \"Where "
        "is it now?\" asked {B} on {day1}. \"{den},\" {said_A}, \"as always.\" {moral}",
        "One night {pet1_name} was gone. {A} called and {move.ed} over the {crossing}. But in the "
        "morning {pet1_name} lay {den}, and beside it {n2} young ones, all {colour1}. {A} "
        "{gesture.ed}. \"Now you have to find {n2} names,\" {said_C}. {moral}"}},

      // Something vanishes in the night; the tracks tell.
      {"plot_mystery",
       {"{meet_A} {C}, the {job1}, kept {fruit1.s} in {material1.a} {carrier1} in the {room1}. "
        "{when}, {n1} of them were gone. The next day it was {n2}. \"Who takes my {fruit1.s}?\" "
        "asked {C}.\n\n{mystery_watch}\n\n{mystery_end}"}},
      {"mystery_watch",
       {"\"It was {B},\" said {D}. \"{B} likes {fruit1.s}.\" But {B} had been in {village} since "
        "{day1}. {A} looked at the floor {touch}. There was {found1.a}, and there were the tracks "
        "of {wild1.a}. {scene}",
        "{A} and {B} hid behind the {furniture} and waited. {weather_change}. At {hour1} something "
        "{creature_move.ed} through the {room1}. It left {found1.a} behind. \"I know who it is,\" "
        "{said_B}. [{scene}|{upset_A}]"}},
      {"mystery_end",
       {"At night they followed the tracks to the {landscape}. There {wild1.a} was feeding {n3} "
        "young ones with {fruit1.s}. \"They are hungry,\" {said_A}. So {C} put {number} {fruit1.s} "
        "under the {tree1} each evening, and the {material1} {carrier1} stayed full. \"Was it "
        "{B}?\" asked {D}. \"No,\" {said_A}, \"it was {wild1.a}.\" {moral}",
        "\"The thief is {wild1.a},\" {said_A}. \"Only {wild1.a} leaves {found1.a} behind.\" {C} "
        "closed the {carrier1} and {gesture.ed}. But every {day2} {A} took some {fruit1.s} to the "
        "{landscape}, and {wild1.a} was waiting there. {moral}"}},

      // Two rivals and what each of them is good at.
      {"plot_contest",
       {"{meet_A} {A.he} was {trait1.er} than {B}, but {B} was {trait2.er} than {A}. On {day1} "
        "there was a race at the {festival1}: from the {building1} over the {crossing1} to the "
        "{tree1}. The prize was {look1.a} {x}.\n\n{contest_run}\n\n{contest_end}"}},
      {"contest_run",
       {"At {hour1} {C} waved {colour.a} {clothing}, and they ran. {A} was first at the "
        "{crossing1}. There {A.he} [fell over|slipped on|stopped beside] {found.a}. {scene} {B} "
        "{move.ed} past {pace}.",
        "{B} was first at the {crossing1}, because {A} had stopped to look at {seen}. [{scene}|] "
        "Then [a thick fog came up from the {water}|it began to snow|it rained so hard that the "
        "road disappeared], and neither could see the other any more."}},
      {"contest_end",
       {"At the {tree1} {B} stood still and waited. \"Why did you not go on?\" asked {A}. "
        "\"Because we started together,\" {said_B}. So they won together. The {x} stands one week "
        "with {A} and one week with {B}. \"{A} is {trait1.er},\" {said_C}, \"and {B} is "
        "{trait2.er}, but together you are the {trait.est} of all.\"",
        "{A} reached the {tree1} first and got the {look1} {x}. {B} {gesture.ed}. \"You are "
        "{trait1.er},\" {B.he} said. \"But you are {trait2.er},\" {said_A}, \"and next {day1} we "
        "will play {game1}.\" {moral}",
        "{B} touched the {tree1} first. {C} gave {B.him} the {x}, which was {look1} and {look}. "
        "{A} was {upset}, but not for long. \"Show me how you did it,\" {A.he} said, for {A.he} "
        "was the {trait1.est} loser of {village1}. {moral}"}},

      // Planting, waiting, sharing.
      {"plot_garden",
       {"{meet_A} In {month1} {C} gave {A.him} {n1} seeds. \"Will they be {flower1.s} or "
        "{vegetable1.s}?\" asked {A}. {garden_answer}\n\n{garden_wait}\n\n{garden_end}"}},
      {"garden_answer",
       {"\"Wait and see,\" {said_C}. \"But promise to water them every {day1}.\" {A} planted them "
        "under the {tree1} and put {found.a} on top.",
        "{C} only {gesture.ed}. \"They need water every {day1},\" {C.he} said, \"and somebody who "
        "is patient.\" {A} planted them behind the {building1}, beside the {tree1}."}},
      {"garden_wait",
       {"For {n2} weeks nothing happened. {B} {worry.ed}. \"Perhaps {wild1.a} has eaten them,\" "
        "{said_B}. But every {day1} {A} came with the water. {scene}",
        "It was {weather} for {n2} weeks, and then {weather.er} still. Once {A} wanted to dig them "
        "up, but {B} said: \"It is {day1}. Give them water and wait.\" [{scene}|{habit}]"}},
      {"garden_end",
       {"Then one {daytime} {A} found {n1} green leaves under the {tree1}. In {month} they were "
        "{flower1.s}, taller than {B}. {A} cut {n3} of them and brought them to {C}. \"So they "
        "were not {vegetable1.s},\" {said_B}. {moral}",
        "In {month} there were so many {vegetable1.s} that {A} gave {n3} to {C} and {n2} to {B}. "
        "\"And I hoped for {flower1.s},\" {said_A}. \"You cannot make soup of {flower1.s},\" "
        "{said_C}. They {gesture.ed} and made {dish.a}. {moral}"}},

      // Fear of a sound, and what it was.
      {"plot_night",
       {"{meet_A} {meet_B} {when}, {B} came to stay. "
        "{night_sound}\n\n{night_look}\n\n{night_end}"}},
      {"night_sound",
       {"They played {game1} until {until} and then lay down in the {room1}. At "
        "[midnight|one|two|three|four] {B} woke up. Something {noise_at} was {creature_act.ing}. "
        "\"Did you hear that?\" whispered {B}. \"It is {wild1.a},\" {said_A}. \"Or a thief,\" "
        "{said_B}.",
        "In the evening they {task1.ed} and ate {dish1.s}. In the middle of the night there was a "
        "noise {noise_at}. {B} was {upset}. \"Perhaps it is {wild1.a},\" {said_A}. \"{wild1.a} "
        "does not knock,\" {said_B}."}},
      {"night_look",
       {"{A} took the lamp, and {B} took {tool.a}. They {sneak.ed} {pace} past the {furniture} and "
        "the {container.s}. {weather_change}. Their {limb.s} trembled. [{scene_home}|{upset_A}]",
        "\"One of us must look,\" {said_B}. \"You are {trait2}, you go first.\" \"No, we go "
        "together,\" {said_A}. \"We must {sneak1},\" {said_A}, \"as {wild_animal.a} {sneak1.s}.\" "
        "So they went {sneak1.ing} through the {room} and the {room}, each with {thing.a} in one "
        "hand. {scene_home}"}},
      {"night_end",
       {"There, {noise_at}, sat {C} and ate {dish1.a}. \"I could not sleep,\" {said_C}. \"Would "
        "you like one too?\" So they all ate {dish1.s} at night, and {B} told everybody at school "
        "about {wild1.a} that was really {C}. {moral}",
        "It was only {bird1.a}. It had hidden {noise_at}. It had come through the window and could "
        "not find the way out. {A} opened the door, and it flew to the {tree1}. \"{wild1.a}!\" "
        "said {B} and laughed. \"A thief!\" {said_A}. In the morning the {bird1} sat on the "
        "{tree1}. {moral}"}},
  };
  return rules;
}

}  // namespace forge::data::stories
